//! Transfers beside the work in the queue.

use crate::commands::Command;
use crate::driver::Way;
use crate::{Buffer, Commands, Element, Error, Gpu, Mark, Pinned, Result};

/// Results on their way to the host. When it is dropped, it is [held](Self::hold) first.
#[derive(Debug)]
pub struct Transfer {
    gpu: Gpu,
    done: Mark,
    /// Whose memory must live until then.
    _commands: Commands,
}

impl Transfer {
    /// When they have come: see [`Gpu::wait`] and [`Pinned::numbers_at`].
    pub fn done(&self) -> &Mark {
        &self.done
    }

    /// Work that is put into the queue from now on waits for them, the host does not: it may write what they are read
    /// from.
    ///
    /// # Errors
    /// [`Error::Driver`].
    pub fn hold(&self) -> Result<()> {
        self.gpu.driver().hold(self.done.mark.as_ref())
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        // A device that fails says so to the next who waits for it.
        let _ = self.hold();
    }
}

impl Gpu {
    /// Fills a buffer from host memory beside the work in the queue: the transfer begins when the queue has come to
    /// `after`, and work that is put in later waits for it. So the next image travels while this one is computed, given
    /// two buffers. The mark is the one after the last work on the buffer, or after the buffer was made: its memory may
    /// have been another's, whose work is still to be done.
    ///
    /// # Errors
    /// [`Error::Usage`] when the buffer is too small or something belongs to another device, [`Error::Driver`].
    pub fn upload_beside<T: Element>(&self, from: &Pinned<T>, to: &Buffer<T>, after: &Mark) -> Result<()> {
        let mut commands = Commands::new();
        commands.upload(from, to)?;
        commands.run_on(self.id())?;
        self.id().check(&after.device)?;
        let done = self.driver().beside(Way::ToDevice, &commands.list, after.mark.as_ref())?;
        self.driver().hold(done.as_ref())
    }

    /// Reads results, once the queue has come here, beside the work that is put into it later. That must not write what
    /// is read, unless the transfer was [held](Transfer::hold).
    ///
    /// # Errors
    /// [`Error::Usage`] for commands other than downloads or of another device, [`Error::Driver`].
    pub fn download_beside(&self, commands: Commands) -> Result<Transfer> {
        if !commands.list.iter().all(|command| matches!(command, Command::Download { .. })) {
            return Err(Error::Usage("only downloads can run beside the work".into()));
        }
        commands.run_on(self.id())?;
        if self.is_profiled() {
            return self.download(commands);
        }
        let after = self.driver().mark()?;
        let done = self.driver().beside(Way::ToHost, &commands.list, after.as_ref())?;
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
