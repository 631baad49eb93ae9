//! NVRTC, which compiles kernels for CUDA.
#![expect(unsafe_code, reason = "a library of foreign code")]

use super::library::{complete, error};
use crate::{Error, Result};
use cudarc::nvrtc::sys::{self, nvrtcResult};
use std::ffi::{CString, c_char, c_int};
use std::ptr;

/// The functions that are called.
const FUNCTIONS: [&str; 12] = [
    "nvrtcCompileProgram",
    "nvrtcCreateProgram",
    "nvrtcDestroyProgram",
    "nvrtcGetCUBIN",
    "nvrtcGetCUBINSize",
    "nvrtcGetNumSupportedArchs",
    "nvrtcGetPTX",
    "nvrtcGetPTXSize",
    "nvrtcGetProgramLog",
    "nvrtcGetProgramLogSize",
    "nvrtcGetSupportedArchs",
    "nvrtcVersion",
];

/// Fails if NVRTC is missing.
fn start() -> Result<()> {
    // SAFETY: opens a library.
    if !unsafe { sys::is_culib_present() } {
        return Err(super::library::absent(
            "no compiler: libnvrtc.so cannot be loaded; install CUDA's NVRTC (it also comes as a Python wheel, \
             nvidia-cuda-nvrtc) where the loader finds it, or use opencl"
                .into(),
        ));
    }
    // SAFETY: the library is there; the function is looked up and not called.
    let has = |name: &[u8]| unsafe { sys::culib().get::<unsafe extern "C" fn()>(name).is_ok() };
    complete("libnvrtc.so", &FUNCTIONS, has)
}

/// The version of NVRTC; fails if it is missing, or too old or too new for cards of this capability.
pub(super) fn compiles_for(capability: u32) -> Result<String> {
    start()?;
    let (mut major, mut minor) = (0, 0);
    // SAFETY: writes two integers.
    check("version", unsafe { sys::nvrtcVersion(&raw mut major, &raw mut minor) })?;
    let mut number = 0;
    // SAFETY: writes one integer.
    check("architectures", unsafe { sys::nvrtcGetNumSupportedArchs(&raw mut number) })?;
    let mut known = vec![0; number.max(0) as usize];
    // SAFETY: writes as many integers as the call before has returned.
    check("architectures", unsafe { sys::nvrtcGetSupportedArchs(known.as_mut_ptr()) })?;
    match known.iter().any(|n| n.unsigned_abs() == capability) {
        true => Ok(format!("{major}.{minor}")),
        false => Err(error(format!(
            "NVRTC {major}.{minor} compiles for sm_{} to sm_{}, not for this card, sm_{capability}; install one that does, or use \
             opencl",
            known.iter().min().unwrap_or(&0),
            known.iter().max().unwrap_or(&0),
        ))),
    }
}

fn check(what: &str, result: nvrtcResult) -> Result<()> {
    match result {
        nvrtcResult::NVRTC_SUCCESS => Ok(()),
        failed => Err(error(format!("NVRTC, {what}: {failed:?}"))),
    }
}

struct Program(sys::nvrtcProgram);

impl Program {
    fn new(name: &CString, source: &CString) -> Result<Self> {
        let mut program = ptr::null_mut();
        // SAFETY: writes one handle; both strings live during the call and end in a zero byte. There are no headers.
        let made = unsafe {
            sys::nvrtcCreateProgram(
                &raw mut program,
                source.as_ptr(),
                name.as_ptr(),
                0,
                ptr::null(),
                ptr::null(),
            )
        };
        check("creating a program", made)?;
        Ok(Self(program))
    }

    /// NVRTC's own verdict; [`log`](Self::log) says why.
    fn compile(&self, options: &[CString]) -> nvrtcResult {
        let pointers: Vec<_> = options.iter().map(|option| option.as_ptr()).collect();
        // SAFETY: as many strings as the count says, each of which lives during the call.
        unsafe { sys::nvrtcCompileProgram(self.0, pointers.len() as c_int, pointers.as_ptr()) }
    }

    /// What NVRTC gives: `length` tells how many bytes, and `bytes` writes them. PTX and logs end in a zero byte.
    fn output(
        &self,
        what: &str,
        length: unsafe fn(sys::nvrtcProgram, *mut usize) -> nvrtcResult,
        bytes: unsafe fn(sys::nvrtcProgram, *mut c_char) -> nvrtcResult,
    ) -> Result<Vec<u8>> {
        let mut len = 0;
        // SAFETY: writes one number.
        check(&format!("the size of {what}"), unsafe { length(self.0, &raw mut len) })?;
        let mut out = vec![0_u8; len];
        // SAFETY: the buffer has the length that NVRTC has just returned.
        check(what, unsafe { bytes(self.0, out.as_mut_ptr().cast()) })?;
        Ok(out)
    }

    fn log(&self) -> Result<String> {
        let log = self.output("a log", sys::nvrtcGetProgramLogSize, sys::nvrtcGetProgramLog)?;
        Ok(String::from_utf8_lossy(&log).trim_end_matches('\0').to_owned())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: created in `new`, destroyed once.
        let _ = unsafe { sys::nvrtcDestroyProgram(&raw mut self.0) };
    }
}

/// Compiles for an architecture such as `sm_90`, or to PTX for `compute_90`, whether there is such a device or not.
pub(crate) fn compile(name: &str, source: &str, architecture: &str) -> Result<Vec<u8>> {
    start()?;
    let wrong = |what: &str| Error::Usage(format!("{name}: {what} holds a zero byte"));
    let source = CString::new(source).map_err(|_| wrong("the source"))?;
    let title = CString::new(name).map_err(|_| wrong("the name"))?;
    let options = [
        // Warp-group instructions, which only this generation has, compile for sm_90a alone.
        format!("--gpu-architecture={}", if architecture == "sm_90" { "sm_90a" } else { architecture }),
        "--std=c++17".into(),
        // The arithmetic of the dialect: fused only where written, IEEE division and roots, denormals kept.
        "--fmad=false".into(),
        "--prec-div=true".into(),
        "--prec-sqrt=true".into(),
        "--ftz=false".into(),
    ];
    let options = options.map(|option| CString::new(option).map_err(|_| wrong("an option")));
    let options = options.into_iter().collect::<Result<Vec<CString>>>()?;
    let program = Program::new(&title, &source)?;
    match program.compile(&options) {
        nvrtcResult::NVRTC_SUCCESS if architecture.starts_with("compute_") => {
            program.output("PTX", sys::nvrtcGetPTXSize, sys::nvrtcGetPTX)
        }
        nvrtcResult::NVRTC_SUCCESS => program.output("a binary", sys::nvrtcGetCUBINSize, sys::nvrtcGetCUBIN),
        refused => {
            let log = program.log().unwrap_or_else(|e| format!("{refused:?}, and no log: {e}"));
            Err(Error::Compile { program: name.into(), device: architecture.into(), log })
        }
    }
}
