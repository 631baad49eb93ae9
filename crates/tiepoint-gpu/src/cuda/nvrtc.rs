//! NVRTC, which compiles kernels for CUDA.
#![expect(unsafe_code, reason = "a library of foreign code")]

use super::library::{complete, error};
use crate::{Error, Result};
use cudarc::nvrtc::sys::{self, nvrtcResult};
use std::ffi::{CString, c_int};
use std::ptr;

/// What is called.
const FUNCTIONS: [&str; 10] = [
    "nvrtcCompileProgram",
    "nvrtcCreateProgram",
    "nvrtcDestroyProgram",
    "nvrtcGetCUBIN",
    "nvrtcGetCUBINSize",
    "nvrtcGetNumSupportedArchs",
    "nvrtcGetProgramLog",
    "nvrtcGetProgramLogSize",
    "nvrtcGetSupportedArchs",
    "nvrtcVersion",
];

/// Fails where NVRTC is not there.
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

/// The version of NVRTC; fails where it is not there, or is too old or too new for cards of this capability.
pub(super) fn compiles_for(capability: u32) -> Result<String> {
    start()?;
    let (mut major, mut minor) = (0, 0);
    // SAFETY: writes two integers.
    check("version", unsafe { sys::nvrtcVersion(&raw mut major, &raw mut minor) })?;
    let mut number = 0;
    // SAFETY: writes one integer.
    check("architectures", unsafe { sys::nvrtcGetNumSupportedArchs(&raw mut number) })?;
    let mut known = vec![0; number.max(0) as usize];
    // SAFETY: writes as many integers as it has said.
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

/// Compiles for an architecture such as `sm_90`, whether there is such a device or not.
pub(crate) fn compile(name: &str, source: &str, architecture: &str) -> Result<Vec<u8>> {
    start()?;
    let wrong = |what: &str| Error::Usage(format!("{name}: {what} holds a zero byte"));
    let text = CString::new(source).map_err(|_| wrong("the source"))?;
    let title = CString::new(name).map_err(|_| wrong("the name"))?;
    let options = [
        format!("--gpu-architecture={architecture}"),
        "--std=c++17".into(),
        // The arithmetic of the dialect: fused only where written, IEEE division and roots, denormals kept.
        "--fmad=false".into(),
        "--prec-div=true".into(),
        "--prec-sqrt=true".into(),
        "--ftz=false".into(),
    ];
    let options = options.map(|o| CString::new(o).map_err(|_| wrong("an option")));
    let options = options.into_iter().collect::<Result<Vec<CString>>>()?;
    let pointers: Vec<_> = options.iter().map(|o| o.as_ptr()).collect();
    let failed = |what: &str, e: nvrtcResult| error(format!("NVRTC, {what} of {name}: {e:?}"));
    let ok = nvrtcResult::NVRTC_SUCCESS;
    // SAFETY: every pointer lives during its call, every buffer has the length that NVRTC names before.
    unsafe {
        let mut program = ptr::null_mut();
        let made = sys::nvrtcCreateProgram(
            &raw mut program,
            text.as_ptr(),
            title.as_ptr(),
            0,
            ptr::null(),
            ptr::null(),
        );
        if made != ok {
            return Err(failed("opening", made));
        }
        let compiled = sys::nvrtcCompileProgram(program, pointers.len() as c_int, pointers.as_ptr());
        let result = if compiled == ok {
            let mut len = 0;
            let mut asked = sys::nvrtcGetCUBINSize(program, &raw mut len);
            let mut binary = vec![0_u8; len];
            if asked == ok {
                asked = sys::nvrtcGetCUBIN(program, binary.as_mut_ptr().cast());
            }
            if asked == ok { Ok(binary) } else { Err(failed("binary", asked)) }
        } else {
            let mut len = 0;
            let mut asked = sys::nvrtcGetProgramLogSize(program, &raw mut len);
            let mut log = vec![0_u8; len];
            if asked == ok {
                asked = sys::nvrtcGetProgramLog(program, log.as_mut_ptr().cast());
            }
            let log = match asked == ok {
                true => String::from_utf8_lossy(&log).trim_end_matches('\0').to_owned(),
                false => format!("{compiled:?}, and no log: {asked:?}"),
            };
            Err(Error::Compile { program: name.into(), device: architecture.into(), log })
        };
        let _ = sys::nvrtcDestroyProgram(&raw mut program);
        result
    }
}
