//! A stand-in for a card: it has no memory, runs nothing, reads zeros, and records the source of every program that is
//! requested. So the kernels that calls on a card of this capability need can be packaged on a machine without one.
#![expect(unsafe_code, reason = "host memory for transfers that do not happen")]

use crate::commands::Command;
use crate::driver::{Driver, DriverKernel, DriverMark, DriverProgram, Raw, Side, Work};
use crate::{Api, Error, Info, Result, lock};
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

#[derive(Debug)]
pub(crate) struct Dry {
    info: Info,
    asked: Asked,
    /// The sizes of host memory by its start.
    host: Mutex<HashMap<usize, Layout>>,
}

/// Programs by their source, with their names.
pub(crate) type Asked = Arc<Mutex<BTreeMap<String, String>>>;

#[derive(Debug)]
struct Nothing;
impl DriverProgram for Nothing {
    fn kernel(&self, _: &str, _: [u32; 2]) -> Result<Arc<DriverKernel>> {
        Ok(Arc::new(Self))
    }
}

impl Dry {
    pub(crate) fn new(capability: u32, asked: Asked) -> Self {
        let info = Info {
            api: Api::Cuda,
            index: 0,
            name: format!("sm_{capability}, without a card"),
            driver: "none".into(),
            memory: 16 << 30,
            units: 64,
            local_memory: 48 << 10,
            group: 1024,
            capability,
            has_f64: true,
            has_whole_words: true,
            warp: 32,
            is_cpu: false,
        };
        Self { info, asked, host: Mutex::default() }
    }

    fn run(commands: &[Command]) {
        for command in commands {
            match command {
                // SAFETY: the command keeps the memory, whose length was checked when it was recorded.
                Command::Download { to, to_offset, bytes, .. } => unsafe {
                    to.start.add(*to_offset).write_bytes(0, *bytes);
                },
                Command::Together(lists) => lists.iter().for_each(|list| Self::run(list)),
                _ => {}
            }
        }
    }
}

impl Driver for Dry {
    fn info(&self) -> &Info {
        &self.info
    }

    fn allocate(&self, _: usize) -> Result<Raw> {
        // Aligned as a card's memory.
        Ok(Raw(256))
    }

    fn free(&self, _: Raw) {}

    fn free_bytes(&self) -> Option<u64> {
        Some(self.info.memory)
    }

    fn allocate_host(&self, bytes: usize) -> Result<*mut u8> {
        let refused = |_| Error::Usage(format!("{bytes} bytes of host memory"));
        let layout = Layout::from_size_align(bytes.max(1), 4096).map_err(refused)?;
        // SAFETY: the size is not zero.
        let start = unsafe { alloc_zeroed(layout) };
        if start.is_null() {
            return Err(Error::Memory { device: self.info.name.clone(), asked: bytes as u64, free: None });
        }
        lock(&self.host).insert(start as usize, layout);
        Ok(start)
    }

    fn free_host(&self, memory: *mut u8) {
        if let Some(layout) = lock(&self.host).remove(&(memory as usize)) {
            // SAFETY: it was allocated with this layout and not freed since.
            unsafe { dealloc(memory, layout) };
        }
    }

    fn binary_key(&self) -> String {
        String::new()
    }

    fn compile(&self, name: &str, source: &str) -> Result<(Arc<dyn DriverProgram>, Vec<u8>)> {
        let mut asked = lock(&self.asked);
        asked.insert(source.to_owned(), name.to_owned());
        Ok((Arc::new(Nothing), Vec::new()))
    }

    fn load(&self, _: &str, _: &[u8]) -> Result<Arc<dyn DriverProgram>> {
        Ok(Arc::new(Nothing))
    }

    fn write(&self, _: Raw, _: usize, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn read(&self, _: Raw, _: usize, to: &mut [u8]) -> Result<()> {
        to.fill(0);
        Ok(())
    }

    fn beside(&self, _: Side, work: Work<'_>, _: &[&DriverMark]) -> Result<Arc<DriverMark>> {
        if let Work::Commands(commands) = work {
            Self::run(commands);
        }
        Ok(Arc::new(Nothing))
    }

    fn hold(&self, _: &DriverMark) -> Result<()> {
        Ok(())
    }

    fn enqueue(&self, command: &Command) -> Result<()> {
        Self::run(std::slice::from_ref(command));
        Ok(())
    }

    fn mark(&self) -> Result<Arc<DriverMark>> {
        Ok(Arc::new(Nothing))
    }

    fn wait(&self, _: &DriverMark) -> Result<()> {
        Ok(())
    }

    fn seconds_between(&self, _: &DriverMark, _: &DriverMark) -> Result<f64> {
        Ok(0.0)
    }

    fn finish(&self) -> Result<()> {
        Ok(())
    }

    fn finish_all(&self) -> Result<()> {
        Ok(())
    }

    fn is_done(&self, _: &DriverMark) -> Result<bool> {
        Ok(true)
    }
}
