//! Transfers beside the work in the queue.

use crate::commands::Command;
use crate::driver::{DriverMark, Side, Work};
use crate::{Buffer, Commands, Element, Error, Gpu, Mark, Pinned, Result};
use std::sync::Arc;

/// A transfer of results to the host that may still run. Dropping it makes later work [wait](Self::hold) for it.
#[derive(Debug)]
pub struct Transfer {
    gpu: Gpu,
    done: Mark,
    /// Keep the memory alive until `done`.
    _commands: Commands,
}

impl Transfer {
    /// The point at which the results have arrived: see [`Gpu::wait`] and [`Pinned::numbers_at`].
    pub fn done(&self) -> &Mark {
        &self.done
    }

    /// Makes work that is put into the queue from now on wait for this transfer, so that it may overwrite what the
    /// transfer reads. The host does not wait.
    ///
    /// # Errors
    /// [`Error::Driver`].
    pub fn hold(&self) -> Result<()> {
        self.gpu.driver().hold(self.done.mark.as_ref())
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        // A failure of the device is reported by the next call that waits for it.
        let _ = self.hold();
    }
}

impl Gpu {
    /// Puts work into the queue of a side. On an error a part of it may still run, so the device is waited for.
    pub(crate) fn put_beside(
        &self,
        side: Side,
        work: Work<'_>,
        after: &[&DriverMark],
    ) -> Result<Arc<DriverMark>> {
        self.driver().beside(side, work, after).inspect_err(|_| drop(self.driver().finish_all()))
    }

    /// Fills a buffer from host memory while the queue goes on: the transfer starts when the queue has reached `after`,
    /// and work that is put in later waits for it. With two buffers, the next image is transferred while this one is
    /// computed. `after` must come after the last use of the buffer, or after its creation: memory is reused, and
    /// work on its previous contents may still be waiting. Returns the point at which the buffer is filled.
    ///
    /// # Errors
    /// [`Error::Usage`] when the buffer is too small or something belongs to another device, [`Error::Driver`].
    pub fn upload_beside<T: Element>(&self, from: &Pinned<T>, to: &Buffer<T>, after: &Mark) -> Result<Mark> {
        let mut commands = Commands::new();
        commands.upload(from, to)?;
        commands.run_on(self.id())?;
        self.id().check(&after.device)?;
        let work = Work::Commands(&commands.list);
        let done = self.put_beside(Side::ToDevice, work, &[after.mark.as_ref()])?;
        self.driver().hold(done.as_ref())?;
        Ok(Mark { mark: done, device: self.id().clone() })
    }

    /// Reads results once the queue has come to this point, while later work runs. Later work must not overwrite what
    /// is read before it [waits](Transfer::hold) for the transfer.
    ///
    /// # Errors
    /// [`Error::Usage`] for commands other than downloads or of another device, [`Error::Driver`].
    pub fn download_beside(&self, commands: Commands) -> Result<Transfer> {
        let after = self.mark()?;
        self.download_after(commands, &after)
    }

    /// As [`download_beside`](Self::download_beside), but begins when the queue reaches `after`, an earlier point.
    ///
    /// # Errors
    /// As [`download_beside`](Self::download_beside), and [`Error::Usage`] for another device's mark.
    pub fn download_after(&self, commands: Commands, after: &Mark) -> Result<Transfer> {
        if !commands.list.iter().all(|command| matches!(command, Command::Download { .. })) {
            return Err(Error::Usage("only downloads can run beside the work".into()));
        }
        commands.run_on(self.id())?;
        self.id().check(&after.device)?;
        if self.is_profiled() {
            return self.download(commands);
        }
        commands.read_by(u64::MAX);
        let work = Work::Commands(&commands.list);
        let done = self.put_beside(Side::ToHost, work, &[after.mark.as_ref()])?;
        let done = Mark { mark: done, device: self.id().clone() };
        Ok(Transfer { gpu: self.clone(), done, _commands: commands })
    }

    /// Reads results as part of the work in the queue.
    ///
    /// # Errors
    /// [`Error::Driver`].
    pub fn download(&self, commands: Commands) -> Result<Transfer> {
        self.run(&commands)?;
        Ok(Transfer { gpu: self.clone(), done: self.mark()?, _commands: commands })
    }
}
