//! Every flag of every command with absurd numbers: a result or a message, within the memory of a small machine.

use super::*;

/// The flags of a command that take a value, by its help.
fn flags(command: &str) -> Vec<String> {
    let help = works(&format!("{command} --help"));
    let words = help.lines().map(str::trim).filter_map(|line| {
        let long = line
            .strip_prefix("--")
            .or_else(|| line.get(4..)?.strip_prefix("--").filter(|_| line.starts_with('-')))?;
        let (flag, rest) = long.split_once(' ')?;
        rest.starts_with('<').then(|| format!("--{flag}"))
    });
    words.collect()
}

/// Runs the command with 6 GB of memory. A run longer than 10 s is ended and passes: a flag may ask for many steps.
fn runs_small(folder: &Folder, line: &str) {
    let output = Command::new("sh")
        .args(["-c", "ulimit -v 6000000; exec timeout 10 \"$@\"", "sh", env!("CARGO_BIN_EXE_tiepoint")])
        .args(line.split_whitespace())
        .current_dir(&folder.0)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let ended = matches!(output.status.code(), Some(0 | 1 | 2 | 124));
    assert!(ended && !said.contains("panicked"), "{line}: {:?}: {said}", output.status);
}

#[test]
fn absurd_numbers_of_every_flag_end_in_a_result_or_a_message() {
    let folder = Folder::new("flags");
    folder.make("images");
    for (name, seed) in [("a", 1), ("b", 1), ("images/0", 1), ("images/1", 1), ("images/2", 2)] {
        folder.texture(&format!("{name}.png"), Size::new(96, 72), seed);
    }
    folder.put("kernel.csv", "1,2,1\n");
    folder.put("h.txt", "1 0 0\n0 1 0\n0 0 1\n");
    folder.works("stereo a.png b.png --disparities 8 --output map.pfm");
    for (words, run) in [
        (1, "detect a.png"),
        (1, "detect a.png --detector surf"),
        (1, "match a.png b.png"),
        (1, "register a.png b.png --output r.png"),
        (1, "rectify a.png b.png --output-left l.png --output-right r.png"),
        (1, "stereo a.png b.png --disparities 8 --output m.pfm"),
        (1, "stereo a.png b.png --disparities 8 --output m.pfm --cost mi"),
        (2, "filter gauss a.png g.png --sigma 1"),
        (2, "filter sobel a.png g.png"),
        (2, "filter hessian a.png g.tif --blobs b.csv"),
        (2, "filter convolve a.png g.png --kernel kernel.csv"),
        (2, "evaluate disparity map.pfm map.pfm"),
        (2, "evaluate homography a.png b.png h.txt"),
        (1, "collect images --output a.db"),
        (1, "collect images --output a.db --pairs sequence"),
        (1, "collect images --output a.db --pairs top-scale"),
        (1, "bench --size 64x48 --repeat 1"),
        (1, "demo scenes"),
    ] {
        let run: Vec<&str> = run.split(' ').collect();
        let flags = flags(&run[..words].join(" "));
        assert!(flags.len() >= 2, "the flags of {run:?} are found");
        // Any number is a valid seed; --threads and --device are the same in every command.
        for flag in flags.iter().filter(|flag| !["--seed", "--threads", "--device"].contains(&flag.as_str()))
        {
            // Leaves the flag out of the base command, so that it is not given twice.
            let at = run.iter().position(|word| word == flag);
            let without = at.map_or(run.clone(), |at| [&run[..at], &run[at + 2..]].concat()).join(" ");
            for number in ["4000000000", "18446744073709551615", "1e300", "65535x65535"] {
                let _ = std::fs::remove_dir_all(folder.at("a.db.work"));
                runs_small(&folder, &format!("{without} {flag}={number} --device cpu --threads 1"));
            }
        }
    }
}
