//! Every flag of every command with absurd numbers: a result or a message, within the memory of a small machine.

use super::*;

/// The flags of a command that take a value, by its help.
fn flags(command: &[&str]) -> Vec<String> {
    let help = works(&[command, &["--help"]].concat());
    let words = help.lines().map(str::trim).filter_map(|line| {
        let long = line
            .strip_prefix("--")
            .or_else(|| line.get(4..)?.strip_prefix("--").filter(|_| line.starts_with('-')))?;
        let (flag, rest) = long.split_once(' ')?;
        rest.starts_with('<').then(|| format!("--{flag}"))
    });
    words.collect()
}

/// Runs the command with 6 GB of memory and for 10 s at most: a run that takes longer was asked for as many steps.
fn runs_small(folder: &Folder, arguments: &[&str]) {
    let output = Command::new("sh")
        .args(["-c", "ulimit -v 6000000; exec timeout 10 \"$@\"", "sh", env!("CARGO_BIN_EXE_tiepoint")])
        .args(arguments)
        .current_dir(&folder.0)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        matches!(output.status.code(), Some(0 | 1 | 2 | 124)),
        "{arguments:?}: {:?}: {said}",
        output.status
    );
    assert!(!said.contains("panicked"), "{arguments:?}: {said}");
}

#[test]
fn absurd_numbers_of_every_flag_end_in_a_result_or_a_message() {
    let folder = Folder::new("flags");
    let (a, b) =
        (folder.texture("a.png", Size::new(96, 72), 1), folder.texture("b.png", Size::new(96, 72), 1));
    std::fs::create_dir(folder.at("images")).unwrap();
    for i in 0..3_u64 {
        folder.texture(&format!("images/{i}.png"), Size::new(96, 72), 1 + i / 2);
    }
    let (images, database, map) = (folder.at("images"), folder.at("a.db"), folder.at("map.pfm"));
    std::fs::write(folder.at("kernel.csv"), "1,2,1\n").unwrap();
    std::fs::write(folder.at("h.txt"), "1 0 0\n0 1 0\n0 0 1\n").unwrap();
    works(&["stereo", &a, &b, "--disparities", "8", "--output", &map]);
    for (words, run) in [
        (1, &["detect", &a][..]),
        (1, &["detect", &a, "--detector", "surf"]),
        (1, &["match", &a, &b]),
        (1, &["register", &a, &b, "--output", "r.png"]),
        (1, &["rectify", &a, &b, "--output-left", "l.png", "--output-right", "r.png"]),
        (1, &["stereo", &a, &b, "--disparities", "8", "--output", "m.pfm"]),
        (1, &["stereo", &a, &b, "--disparities", "8", "--output", "m.pfm", "--cost", "mi"]),
        (2, &["filter", "gauss", &a, "g.png", "--sigma", "1"]),
        (2, &["filter", "sobel", &a, "g.png"]),
        (2, &["filter", "hessian", &a, "g.tif", "--blobs", "b.csv"]),
        (2, &["filter", "convolve", &a, "g.png", "--kernel", "kernel.csv"]),
        (2, &["evaluate", "disparity", &map, &map]),
        (2, &["evaluate", "homography", &a, &b, "h.txt"]),
        (1, &["collect", &images, "--output", &database]),
        (1, &["collect", &images, "--output", &database, "--pairs", "sequence"]),
        (1, &["collect", &images, "--output", &database, "--pairs", "top-scale"]),
        (1, &["bench", "--size", "64x48", "--repeat", "1"]),
        (1, &["demo", "scenes"]),
    ] {
        let flags = flags(&run[..words]);
        assert!(flags.len() >= 2, "the flags of {run:?} are found");
        // A seed is any number, and threads and devices are every command's.
        for flag in flags.iter().filter(|flag| !["--seed", "--threads", "--device"].contains(&flag.as_str()))
        {
            // Not given twice.
            let at = run.iter().position(|word| word == flag);
            let without = at.map_or(run.to_vec(), |at| [&run[..at], &run[at + 2..]].concat());
            for number in ["4000000000", "18446744073709551615", "1e300", "65535x65535"] {
                let _ = std::fs::remove_dir_all(folder.at("a.db.work"));
                let given = format!("{flag}={number}");
                runs_small(&folder, &[&without[..], &[&given, "--device", "cpu", "--threads", "1"]].concat());
            }
        }
    }
}
