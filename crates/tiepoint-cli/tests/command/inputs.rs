//! Input files are never replaced, nor files that may not be written.

use super::*;

#[test]
#[cfg(target_os = "linux")]
fn a_file_that_may_not_be_written_is_kept() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let folder = Folder::new("read-only");
    folder.texture("a.png", SIZE, 1);
    folder.put("kept.csv", "of before");
    std::fs::set_permissions(folder.at("kept.csv"), std::fs::Permissions::from_mode(0o444)).unwrap();
    let mut line =
        vec![env!("CARGO_BIN_EXE_tiepoint"), "detect", "a.png", "--device", "cpu", "-o", "kept.csv"];
    // The superuser may write everything, unless this right is taken away.
    if std::fs::metadata("/proc/self").unwrap().uid() == 0 {
        line.splice(0..0, ["setpriv", "--bounding-set=-dac_override"]);
    }
    let (code, [_, told]) = ran(Command::new(line[0]).args(&line[1..]).current_dir(&folder.0));
    assert!(code == Some(1) && told.contains("kept.csv: Permission denied"), "{told}");
    assert_eq!(folder.text("kept.csv"), "of before");
}

#[test]
fn no_result_of_any_command_replaces_an_input() {
    let folder = Folder::with("inputs", Folder::scene);
    folder.write("mask.png", Image::<u8>::filled(SIZE, 1, 255));
    std::fs::hard_link(folder.at("a.png"), folder.at("hard.png")).unwrap();
    for beside in ["ovr", "aux.xml", "msk"] {
        std::fs::hard_link(folder.at("b.png"), folder.at(&format!("x.png.{beside}"))).unwrap();
    }
    folder.put("pair.txt", "nothing is read before the refusal");
    folder.put("list.csv", "a.png\n");
    folder.put("kernel.png", "1,2,1");
    let contents = || folder.files().iter().map(|name| folder.read(name)).collect::<Vec<_>>();
    let before = contents();
    for line in [
        "detect a.png --draw a.png",
        "detect a.png --draw hard.png",
        "detect a.png --draw ./a.png",
        "detect a.png b.png --draw {}.png",
        "detect a.png --mask mask.png --draw mask.png",
        "detect --list list.csv --output list.csv",
        "detect @list.csv --output list.csv",
        "match a.png b.png --draw a.png",
        "match a.png b.png --draw b.png",
        "match a.png b.png --mask mask.png --draw mask.png",
        "match a.png b.png --mask-b mask.png --draw mask.png",
        "match a.png b.png --matches list.csv --output list.csv",
        "register a.png b.png --output a.png",
        "register a.png b.png --output b.png",
        "register a.png b.png --overlay hard.png",
        "register a.png b.png --draw b.png",
        "rectify a.png b.png --output-left a.png",
        "rectify a.png b.png --output-right b.png",
        "rectify a.png b.png --valid-left b.png",
        "rectify a.png b.png --valid-right hard.png",
        "rectify a.png b.png --calibration pair.txt --output-calibration pair.txt",
        "rectify a.png b.png --draw a.png",
        "stereo a.png b.png --output a.png",
        "stereo a.png b.png --output-right b.png",
        "stereo a.png b.png --confidence ./a.png",
        "stereo a.png b.png --preview hard.png",
        "stereo a.png b.png --mask mask.png --preview mask.png",
        "stereo a.png b.png --mask-right mask.png --preview mask.png",
        "stereo a.png b.png --truth mask.png --output mask.png",
        "filter gauss a.png a.png",
        "filter sobel a.png hard.png",
        "filter hessian a.png h.tif --blobs a.png",
        "filter convolve a.png kernel.png --kernel kernel.png",
        "register a.png x.png.ovr --output x.png",
        "register a.png b.png --mask x.png.aux.xml --output x.png",
        "rectify a.png x.png.aux.xml --output-left x.png",
        "stereo a.png x.png.msk --preview x.png",
        "filter gauss x.png.ovr x.png",
    ] {
        folder.refuses(line, 2, &["would replace the input"]);
        assert!(contents() == before, "{line}: changes nothing");
    }
    for line in [
        "register a.png b.png --output x.png --overlay x.png",
        "rectify a.png b.png --output-left x.png --draw x.png",
        "stereo a.png b.png --confidence x.png --preview x.png",
    ] {
        folder.refuses(line, 2, &["two results"]);
        assert!(contents() == before, "{line}: writes nothing");
    }
    for line in ["match - -", "stereo - - --output x.tif", "detect - --mask - --output x.csv"] {
        let reason = if cfg!(windows) { "no path on Windows" } else { "only one input can be stdin" };
        folder.refuses(line, 2, &[reason]);
    }
    folder.put("old.png", "an older result");
    folder.works("filter gauss a.png old.png --sigma 2");
    assert_eq!(folder.image("old.png").size(), SIZE, "the new result");
}
