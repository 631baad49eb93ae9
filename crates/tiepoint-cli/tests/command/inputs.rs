//! What is read is never replaced.

use super::*;

#[test]
fn no_result_of_any_command_replaces_an_input() {
    let folder = Folder::new("inputs");
    let (a, b, _) = folder.scene();
    let mask = folder.write("mask.png", &Image::<u8>::filled(SIZE, 1, 255).into());
    let hard = folder.at("hard.png");
    std::fs::hard_link(&a, &hard).unwrap();
    let dotted = folder.at("./a.png");
    let [calibration, list, kernel] = ["pair.txt", "list.csv", "kernel.png"].map(|n| folder.at(n));
    std::fs::write(&calibration, "nothing is read before the refusal").unwrap();
    std::fs::write(&list, format!("{a}\n")).unwrap();
    std::fs::write(&kernel, "1,2,1").unwrap();
    let contents = || folder.files().iter().map(|n| std::fs::read(folder.at(n)).unwrap()).collect::<Vec<_>>();
    let before = contents();
    let listed = format!("@{list}");
    let [a, b, hard, dotted, mask] = [&a, &b, &hard, &dotted, &mask].map(String::as_str);
    let [calibration, list, kernel, listed] = [&calibration, &list, &kernel, &listed].map(String::as_str);
    for arguments in [
        &["detect", a, "--draw", a][..],
        &["detect", a, "--draw", hard],
        &["detect", a, "--draw", dotted],
        &["detect", a, b, "--draw", &folder.at("{}.png")],
        &["detect", a, "--mask", mask, "--draw", mask],
        &["detect", "--list", list, "--output", list],
        &["detect", listed, "--output", list],
        &["match", a, b, "--draw", a],
        &["match", a, b, "--draw", b],
        &["match", a, b, "--mask", mask, "--draw", mask],
        &["match", a, b, "--mask-b", mask, "--draw", mask],
        &["register", a, b, "--output", a],
        &["register", a, b, "--output", b],
        &["register", a, b, "--overlay", hard],
        &["register", a, b, "--draw", b],
        &["rectify", a, b, "--output-left", a],
        &["rectify", a, b, "--output-right", b],
        &["rectify", a, b, "--valid-left", b],
        &["rectify", a, b, "--valid-right", hard],
        &["rectify", a, b, "--calibration", calibration, "--output-calibration", calibration],
        &["rectify", a, b, "--draw", a],
        &["stereo", a, b, "--output", a],
        &["stereo", a, b, "--output-right", b],
        &["stereo", a, b, "--confidence", dotted],
        &["stereo", a, b, "--preview", hard],
        &["stereo", a, b, "--mask", mask, "--preview", mask],
        &["stereo", a, b, "--mask-right", mask, "--preview", mask],
        &["filter", "gauss", a, a],
        &["filter", "sobel", a, hard],
        &["filter", "hessian", a, &folder.at("h.tif"), "--blobs", a],
        &["filter", "convolve", a, kernel, "--kernel", kernel],
    ] {
        let message = fails(arguments, 2);
        assert!(message.contains("would replace the input"), "{arguments:?}: {message}");
        assert!(contents() == before, "{arguments:?} changes nothing");
    }
    let twice = folder.at("x.png");
    for arguments in [
        &["register", a, b, "--output", &twice, "--overlay", &twice][..],
        &["rectify", a, b, "--output-left", &twice, "--draw", &twice],
        &["stereo", a, b, "--confidence", &twice, "--preview", &twice],
    ] {
        let message = fails(arguments, 2);
        assert!(message.contains("two results"), "{arguments:?}: {message}");
        assert!(contents() == before, "{arguments:?} writes nothing");
    }
    // What stands there otherwise is replaced whole.
    let old = folder.at("old.png");
    std::fs::write(&old, "an older result").unwrap();
    works(&["filter", "gauss", a, &old, "--sigma", "2"]);
    assert_eq!(image::read(&old, &ReadOptions::default()).unwrap().size(), SIZE, "the new result");
}
