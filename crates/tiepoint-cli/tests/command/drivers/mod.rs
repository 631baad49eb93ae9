//! Drivers that are missing, are none, or refuse: stand-ins that Linux's loader finds before the machine's. Linux only.

use super::{Folder, SIZE, all_in, refused, succeeds};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;

/// All names under which a library is looked for, so that the machine's own is not found under another name.
fn names(library: &str) -> Vec<String> {
    let versions = ["", ".1", ".9", ".10", ".11", ".12", ".13"];
    versions.iter().map(|v| format!("lib{library}.so{v}")).collect()
}

/// A compiled stand-in, which all tests share.
pub(super) fn stand_in(name: &str) -> &'static [u8] {
    static COMPILED: Mutex<BTreeMap<String, &[u8]>> = Mutex::new(BTreeMap::new());
    COMPILED.lock().unwrap().entry(name.to_owned()).or_insert_with(|| compiled(name).leak())
}

fn compiled(name: &str) -> Vec<u8> {
    let folder = Folder::new(&format!("stand-in-{name}"));
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/command/drivers");
    let library = folder.at("library.so");
    // rustc lies beside the cargo that built this test.
    let beside = std::env::var_os("CARGO").map(|cargo| Path::new(&cargo).with_file_name("rustc"));
    let mut rustc = Command::new(beside.filter(|path| path.exists()).unwrap_or("rustc".into()));
    rustc.args(["--edition", "2024", "--crate-type", "cdylib", "-o"]).arg(&library);
    succeeds(rustc.arg(here.join(format!("lib{name}.rs"))));
    std::fs::read(library).unwrap()
}

/// A machine whose libraries are found before the real ones.
struct Machine {
    folder: Folder,
}

impl Machine {
    fn new(test: &str) -> Self {
        let folder = Folder::new(test);
        folder.texture("a.png", SIZE, 1);
        folder.make("lib");
        Self { folder }
    }

    fn with(self, library: &str, content: &[u8]) -> Self {
        names(library).iter().for_each(|name| self.folder.put(&format!("lib/{name}"), content));
        self
    }

    /// With a compiled stand-in as this library.
    fn answering(self, library: &str) -> Self {
        self.with(library, stand_in(&library.to_lowercase()))
    }

    /// With a library that cannot be loaded.
    fn garbage(self, library: &str) -> Self {
        self.with(library, b"not a library")
    }

    /// With OpenCL drivers listed by this file alone.
    fn vendor(self, file: &str) -> Self {
        self.folder.make("vendors");
        self.folder.put("vendors/vendor.icd", file);
        self
    }

    /// Makes 40 images and returns their names.
    fn images(&self) -> Vec<String> {
        let names: Vec<String> = (0..40).map(|i| format!("{i}.png")).collect();
        names.iter().zip(0..).for_each(|(name, seed)| self.folder.texture(name, SIZE, seed));
        names
    }

    fn tiepoint(&self, answers: &str, line: &str) -> Command {
        let mut command = self.folder.tiepoint(line);
        let others = std::env::var("LD_LIBRARY_PATH").unwrap_or_default();
        command.env("LD_LIBRARY_PATH", format!("{}:{others}", self.folder.at("lib").display()));
        command.env("STAND_IN", answers).env("TIEPOINT_CACHE", "").env_remove("OPENCL_DYLIB_PATH");
        if self.folder.has("vendors") {
            command.env("OCL_ICD_VENDORS", self.folder.at("vendors"));
        }
        command
    }

    /// What the command `devices` prints; it must succeed.
    fn devices(&self, answers: &str) -> String {
        let [listed, stderr] = succeeds(&mut self.tiepoint(answers, "devices"));
        assert_eq!(stderr, "", "{answers}");
        listed
    }

    /// The command, given this device, must fail with this code and a message that contains all of `wanted`.
    fn refuses(&self, device: &str, answers: &str, code: i32, wanted: &[&str]) {
        let mut command = self.tiepoint(answers, &format!("detect a.png --device {device}"));
        all_in(&refused(&mut command, code), answers, wanted);
    }

    /// With `--device auto -v` the command must succeed without this driver, print all of `wanted`, and give the
    /// results of the CPU. It ends before a driver is called, so only a library that cannot be loaded is reported.
    fn goes_on(&self, answers: &str, wanted: &[&str]) {
        self.finds_what_the_cpu_finds(answers, "detect a.png --device auto -v", wanted);
    }

    fn finds_what_the_cpu_finds(&self, answers: &str, line: &str, wanted: &[&str]) {
        let [_, stderr] = succeeds(&mut self.tiepoint(answers, &format!("{line} -o found.csv")));
        assert!(!stderr.contains("panicked"), "{answers}: {stderr}");
        all_in(&stderr, answers, wanted);
        self.folder.works("detect a.png --device cpu -o cpu.csv");
        assert!(self.folder.read("cpu.csv") == self.folder.read("found.csv"), "{answers}: the same bytes");
    }

    /// The device must be refused, listed as absent with the reason, and passed over by `--device auto`.
    fn lacks(&self, device: &str, answers: &str, wanted: &[&str]) {
        self.refuses(device, answers, 2, wanted);
        all_in(&self.devices(answers), answers, wanted);
        self.goes_on(answers, &[]);
    }
}

#[test]
fn a_cuda_driver_that_refuses() {
    let machine = Machine::new("cuda-refuses").answering("cuda").answering("nvrtc");
    for (code, name) in [
        (100, "CUDA_ERROR_NO_DEVICE"),
        (803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"),
        (999, "CUDA_ERROR_UNKNOWN"),
        (34, "CUDA_ERROR_STUB_LIBRARY"),
    ] {
        machine.lacks(
            "cuda",
            &format!("cuInit={code}"),
            &["cuInit", name, "nvidia-smi", "use cpu or opencl"],
        );
    }
    machine.lacks("cuda", "version=11040", &["CUDA 11.4", "12.8", "update"]);
    machine.lacks("cuda", "cuDeviceGetCount=3", &["cuDeviceGetCount", "CUDA_ERROR_NOT_INITIALIZED"]);
    machine.lacks("cuda", "cuDeviceGetName=101", &["cuDeviceGetName", "CUDA_ERROR_INVALID_DEVICE"]);
    machine.refuses("cuda", "count=0", 2, &["cuda:0 is not there: it has no device", "tiepoint devices"]);
    machine.refuses("cuda:1", "", 2, &["cuda:1 is not there", "the only device has number 0"]);
}

#[test]
fn a_library_that_is_no_cuda_driver() {
    let wanted = ["libcuda.so.1", "use cpu or opencl"];
    let empty = [&["libcuda.so.1 has no cuInit"], &wanted[1..]].concat();
    for (machine, wanted) in [
        (Machine::new("cuda-garbage").garbage("cuda"), &wanted[..]),
        (Machine::new("cuda-nothing").with("cuda", b""), &wanted),
        (Machine::new("cuda-empty").with("cuda", stand_in("empty")), &empty),
    ] {
        machine.lacks("cuda", "", wanted);
        machine.goes_on("", wanted);
        machine.refuses("cpu+cuda", "", 2, wanted);
    }
}

#[test]
fn a_cuda_driver_without_its_compiler() {
    let wanted = ["libnvrtc.so", "opencl"];
    let garbage = Machine::new("nvrtc-garbage").answering("cuda").garbage("nvrtc");
    garbage.lacks("cuda", "", &wanted);
    assert!(
        garbage.devices("").contains("cuda:0  Stand-in, 1024 units, 16.0 GiB, driver CUDA 13.0\n"),
        "listed"
    );
    let empty = Machine::new("nvrtc-empty").answering("cuda").with("nvrtc", stand_in("empty"));
    empty.lacks("cuda", "", &[&wanted[..], &["has no nvrtc"]].concat());
    let other = Machine::new("nvrtc-other").answering("cuda").answering("nvrtc");
    other.lacks("cuda", "capability=120", &["NVRTC 12.9", "sm_120", "sm_75", "sm_90", "use opencl"]);
    other.refuses("cuda", "nvrtcCreateProgram=1", 1, &["NVRTC", "NVRTC_ERROR_OUT_OF_MEMORY"]);
    other.refuses(
        "cuda",
        "nvrtcCompileProgram=6",
        1,
        &["sm_90", "does not compile", "the stand-in does not like"],
    );
}

#[test]
fn a_cuda_card_that_fails() {
    let machine = Machine::new("cuda-fails").answering("cuda").answering("nvrtc");
    let busy = ["cuDevicePrimaryCtxRetain", "CUDA_ERROR_DEVICE_UNAVAILABLE"];
    machine.lacks("cuda", "cuDevicePrimaryCtxRetain=46", &busy);
    machine.refuses("cuda", "cuModuleLoadData=200", 1, &["loading", "CUDA_ERROR_INVALID_IMAGE"]);
    machine.refuses("cuda", "cuGraphLaunch=719", 1, &["cuGraphLaunch", "CUDA_ERROR_LAUNCH_FAILED"]);
    let told = ["Stand-in has", "SIFT on the CPU: "];
    machine.finds_what_the_cpu_finds("room=10000", "detect a.png --device cuda", &told);
}

/// The driver takes minutes to start. Work continues without it, and the process ends whether the driver was called or
/// not (short work does not call it); its exit handler would abort a process that ran it.
#[test]
fn a_driver_that_is_slow_to_start_holds_nothing_up() {
    let machine = Machine::new("cuda-slow").answering("cuda").answering("nvrtc");
    let slow = "slow=600000";
    let names = machine.images();
    for count in [1, 20] {
        let images = names[..count].join(" ");
        machine.folder.works(format!("detect {images} --device cpu -o cpu{{}}.csv"));
        for device in ["auto", "cpu+cuda"] {
            let line = format!("detect {images} --device {device} --json -v -o found{{}}.csv");
            let [told, stderr] = succeeds(&mut machine.tiepoint(slow, &line));
            all_in(&stderr, slow, &["the work was done before a GPU was open"]);
            assert_eq!(told.matches("\"device\":\"cpu\"").count(), count, "{told}");
            for name in &names[..count] {
                let [cpu, found] = ["cpu", "found"]
                    .map(|by| machine.folder.read(&format!("{by}{}.csv", &name[..name.len() - 4])));
                assert!(cpu == found, "{name} by {device}");
            }
        }
        // A failing command ends as well.
        let line = format!("detect {images} not-there.png --device cpu+cuda");
        all_in(&refused(&mut machine.tiepoint(slow, &line), 1), slow, &["not-there.png"]);
    }
}

/// The driver starts, but refuses while the CPU works.
#[test]
fn a_driver_that_refuses_beside_the_work_leaves_it_to_the_cpu() {
    let machine = Machine::new("cuda-refuses-beside").answering("cuda").answering("nvrtc");
    let images = machine.images().join(" ");
    let line = |device: &str| format!("detect {images} --device {device} -v -o {{}}.csv");
    let told = ["cuInit", "CUDA_ERROR_UNKNOWN", "the CPU does all of the work"];
    let [_, stderr] = succeeds(&mut machine.tiepoint("cuInit=999", &line("cpu+cuda")));
    all_in(&stderr, "cuInit=999", &told);
    let [_, stderr] = succeeds(&mut machine.tiepoint("cuInit=999", &line("auto")));
    all_in(&stderr, "cuInit=999", &told[..2]);
}

#[test]
fn opencl_that_is_not_there_or_refuses() {
    let wanted = ["PoCL", "libOpenCL.so.1"];
    Machine::new("opencl-garbage").garbage("OpenCL").lacks("opencl", "", &wanted);
    Machine::new("opencl-empty").with("OpenCL", stand_in("empty")).lacks("opencl", "", &wanted);
    Machine::new("opencl-vendor").vendor("libnot-there.so.1\n").lacks("opencl", "", &["no platform", "PoCL"]);
    let machine = Machine::new("opencl-refuses").answering("OpenCL");
    machine.lacks("opencl", "clGetPlatformIDs=-6", &["clGetPlatformIDs", "CL_OUT_OF_HOST_MEMORY"]);
    machine.lacks("opencl", "clGetDeviceIDs=-5", &["clGetDeviceIDs", "CL_OUT_OF_RESOURCES"]);
    machine.lacks("opencl", "clGetDeviceInfo=-33", &["clGetDeviceInfo", "CL_INVALID_DEVICE"]);
}
