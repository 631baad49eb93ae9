//! Command lines of other programs: `tiepoint stereo --like mgm …`, or by the name under which it is started.
//!
//! **mgm** (and `mgm_multi`), as s2p and the Ames Stereo Pipeline call it: `mgm [options] LEFT RIGHT DISPARITY [COST
//! [BACKFLOW]]`. Its disparities are offsets added to x to get to the other image, so its range is ours negated. Its
//! penalties are in units of its own costs; ours are scaled by their ratio to its defaults. Sources: the options in
//! `docs/external_algorithms.rst` of the Ames Stereo Pipeline, the calls in `s2p/block_matching.py`.

use crate::failure::{Failure, Outcome};
use std::ffi::{OsStr, OsString};
use std::path::Path;
use tiepoint::stereo::{CensusWindow, Cost};

/// Options of mgm without a counterpart that are followed by a value, and variables of its environment.
const IGNORED: &str = "-S -wl -wr -aP1 -aP2 -aThresh -truncDist -p -m -M -l -Rc -confidence_consensusR \
                       -confidence_costL -confidence_costR -confidence_pkrL -confidence_pkrR";
/// Options with a counterpart.
const KNOWN: &str = "-r -R -t -s -O -P1 -P2 -Rd -confidence_consensusL";
/// The usage printed before the help of `stereo`.
const OPTIONS: &str = "mgm [-r MIN -R MAX] [-t census|ad] [-s none|vfit|parabola] [-O 4|8|16] [-P1 P1 -P2 P2] [-Rd RIGHT] \
                       [-confidence_consensusL FILE] LEFT RIGHT DISPARITY, and options of `tiepoint stereo` with = before their value:";
/// The side of the median, if mgm's environment (`MEDIAN`) asks for one; and the size below which regions are removed,
/// if the environment (`REMOVESMALLCC`) gives none. mgm's paths take in two neighbours (`TSGM`), which leaves fewer
/// specks than the paths here. Most of these specks are smaller than this size (`docs/notebook/stereo.md`).
const MEDIAN: u8 = 5;
const SPECKLE: f64 = 25.0;
const IGNORED_VARIABLES: [&str; 2] = ["MINDIFF", "USE_TRUNCATED_LINEAR_POTENTIALS"];

/// The command line translated for this command, and what was ignored; `variable` reads an environment variable.
pub(crate) fn translated(
    words: Vec<OsString>,
    variable: impl Fn(&str) -> Option<String>,
) -> Outcome<(Vec<OsString>, Option<String>)> {
    let name = words.first().and_then(|word| Path::new(word).file_stem()).and_then(OsStr::to_str);
    let rest = match words.get(1..4) {
        _ if matches!(name, Some("mgm" | "mgm_multi")) => &words[1..],
        Some([stereo, like, program]) if stereo == "stereo" && like == "--like" => match program.to_str() {
            Some("mgm" | "mgm_multi") => &words[4..],
            _ => {
                let program = program.display();
                return Err(Failure::usage(format!("--like {program}: expected mgm or mgm_multi")));
            }
        },
        _ => return Ok((words, None)),
    };
    if let [word] = rest
        && (word == "-h" || word == "--help")
    {
        let program = words.first().cloned().unwrap_or_default();
        return Ok((vec![program, "stereo".into(), "--help".into()], Some(OPTIONS.into())));
    }
    let mgm = Mgm::read(rest)?;
    let (mut line, ignored) = mgm.line(variable)?;
    line.insert(0, words.first().cloned().unwrap_or_default());
    let told = (!ignored.is_empty()).then(|| {
        format!("ignored or replaced, because there is no equivalent of mgm's: {}", ignored.join(", "))
    });
    Ok((line, told))
}

/// A command line of mgm.
#[derive(Default)]
struct Mgm {
    range: [f64; 2],
    distance: String,
    subpixel: String,
    directions: String,
    penalties: [Option<f64>; 2],
    confidence: Option<OsString>,
    right: Option<OsString>,
    files: Vec<OsString>,
    /// Flags of ours, which begin with two dashes.
    ours: Vec<OsString>,
    ignored: Vec<String>,
}

impl Mgm {
    fn read(words: &[OsString]) -> Outcome<Self> {
        let mut found = Self {
            range: [-30.0, 30.0],
            distance: "ad".into(),
            subpixel: "none".into(),
            directions: "4".into(),
            ..Self::default()
        };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let option = match word.to_str() {
                Some(text) if text.starts_with("--") => {
                    found.ours.push(word.clone());
                    continue;
                }
                Some(text) if text.starts_with('-') && text.len() > 1 => text,
                _ => {
                    found.files.push(word.clone());
                    continue;
                }
            };
            let value = words
                .next()
                .ok_or_else(|| Failure::usage(format!("mgm's {option}: its value is missing")))?;
            let text = || value.to_string_lossy().into_owned();
            let number = || number(option, &text());
            match option {
                "-r" => found.range[0] = number()?,
                "-R" => found.range[1] = number()?,
                "-t" => found.distance = text(),
                "-s" => found.subpixel = text(),
                "-O" => found.directions = text(),
                "-P1" => found.penalties[0] = Some(number()?),
                "-P2" => found.penalties[1] = Some(number()?),
                "-confidence_consensusL" => found.confidence = Some(value.clone()),
                "-Rd" => found.right = Some(value.clone()),
                "-inputCostVolume" => {
                    return Err(Failure::usage(
                        "mgm's -inputCostVolume: costs of your own are aggregated from Python: tiepoint.Stereo().optimize(costs, left, right)",
                    ));
                }
                _ if IGNORED.split(' ').any(|ignored| ignored == option) => {
                    found.ignored.push(format!("{option} {}", text()));
                }
                _ => {
                    return Err(Failure::usage(format!("mgm's {option}: expected {KNOWN} {IGNORED}")));
                }
            }
        }
        Ok(found)
    }

    /// The line of this command, without its name, and what was ignored.
    fn line(self, variable: impl Fn(&str) -> Option<String>) -> Outcome<(Vec<OsString>, Vec<String>)> {
        let Self { range: [low, high], penalties, mut ignored, right: ref of_right, .. } = self;
        let given = |name: &str| {
            let value = variable(name).filter(|value| !value.is_empty());
            value.map(|value| number(name, &value)).transpose()
        };
        let [left, right, disparity, outputs @ ..] = &self.files[..] else {
            return Err(Failure::usage(
                "mgm: expected [options] LEFT RIGHT DISPARITY [COST [BACKFLOW]], or --help in place of all",
            ));
        };
        if low > high {
            return Err(Failure::usage(format!("mgm's -r {low} -R {high}: expected -r not above -R")));
        }
        if let (Some(_), Some(backflow)) = (of_right, outputs.get(1)) {
            ignored.push(format!("the flow back beside -Rd, {}", backflow.display()));
        }
        if let [cost, ..] = outputs {
            ignored.push(format!("the file of costs, {}", cost.display()));
        }
        let window = given("CENSUS_NCC_WIN")?.unwrap_or(3.0);
        let cost = match self.distance.as_str() {
            "census" | "ncc" if window <= 5.0 => Cost::Census(CensusWindow::Five),
            "census" | "ncc" if window <= 7.0 => Cost::Census(CensusWindow::Seven),
            "census" | "ncc" => Cost::Census(CensusWindow::NineBySeven),
            _ => Cost::AbsoluteDifference,
        };
        if !matches!(self.distance.as_str(), "census" | "ad") {
            ignored.push(format!("-t {}: {cost} in its place", self.distance));
        }
        let subpixel = match self.subpixel.as_str() {
            "none" => "off",
            "vfit" => "equiangular",
            _ => "parabola",
        };
        if self.subpixel == "cubic" {
            ignored.push("-s cubic: parabola in its place".into());
        }
        let paths = match self.directions.as_str() {
            "2" => "4",
            given => given,
        };
        let (least, most) = ((-high).floor() as i64, (-low).ceil() as i64);
        let mut flags = vec![
            "--offsets".to_owned(),
            format!("--min-disparity={least}"),
            format!("--disparities={}", most.saturating_sub(least).saturating_add(1)),
            format!("--cost={cost}"),
            format!("--paths={paths}"),
            format!("--subpixel={subpixel}"),
            format!("--speckle-size={}", given("REMOVESMALLCC")?.unwrap_or(SPECKLE).max(0.0)),
        ];
        if let Cost::Census(window) = &cost {
            flags.push(format!("--census-window={}", tiepoint::options::Named::name(*window)));
        }
        let ours = cost.penalties();
        for (name, penalty, theirs, ours) in
            [("p1", penalties[0], 8.0, ours.p1), ("p2", penalties[1], 32.0, ours.p2)]
        {
            if let Some(penalty) = penalty {
                flags.push(format!("--{name}={}", (penalty / theirs * f64::from(ours)).round()));
            }
        }
        flags.push(format!("--median={}", if given("MEDIAN")?.unwrap_or(0.0) > 0.0 { MEDIAN } else { 0 }));
        match given("TESTLRRL")? {
            Some(0.0) => flags.push("--right-view=off".into()),
            _ => flags.push(format!("--max-difference={}", given("TESTLRRL_TAU")?.unwrap_or(1.0))),
        }
        if let Some(threads) = given("OMP_NUM_THREADS")? {
            flags.push(format!("--threads={threads}"));
        }
        for name in IGNORED_VARIABLES {
            if let Some(value) = given(name)?.filter(|value| *value > 0.0) {
                ignored.push(format!("{name}={value}"));
            }
        }
        // mgm does not wait for the disk either; for a small tile that takes as long as all the rest.
        flags.push("--no-sync".into());
        // Flags of `tiepoint stereo` take precedence over translated ones.
        let name = |flag: &str| flag.split('=').next().unwrap_or_default().to_owned();
        let said: Vec<_> = self.ours.iter().map(|flag| name(&flag.to_string_lossy())).collect();
        flags.retain(|flag| !said.contains(&name(flag)));
        // Nothing reads the verdict, and its tie points would take half of the time of a small pair.
        if !["--quiet", "--verbose", "--json", "--report"]
            .iter()
            .any(|flag| said.iter().any(|said| said == flag))
        {
            flags.push("--quiet".into());
        }
        let mut line: Vec<OsString> = vec!["stereo".into()];
        line.extend(flags.into_iter().map(OsString::from).chain(self.ours));
        let files = [("--output", Some(disparity)), ("--output-right", of_right.as_ref().or(outputs.get(1)))];
        for (flag, file) in files.into_iter().chain([("--confidence", self.confidence.as_ref())]) {
            line.extend(file.into_iter().flat_map(|file| [flag.into(), file.clone()]));
        }
        line.extend(["--".into(), left.clone(), right.clone()]);
        Ok((line, ignored))
    }
}

fn number(name: &str, text: &str) -> Outcome<f64> {
    let number = text.trim().parse().ok().filter(|number: &f64| number.is_finite());
    number.ok_or_else(|| Failure::usage(format!("mgm's {name} {text}: expected a number")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str, environment: &str) -> Outcome<(String, Option<String>)> {
        let words = line.split_whitespace().map(OsString::from).collect();
        let pairs: Vec<_> = environment.split_whitespace().filter_map(|pair| pair.split_once('=')).collect();
        let variable = |name: &str| pairs.iter().find(|pair| pair.0 == name).map(|pair| pair.1.to_owned());
        let (words, told) = translated(words, variable)?;
        let words: Vec<_> = words.iter().map(|word| word.to_str().unwrap()).collect();
        Ok((words.join(" "), told))
    }

    #[test]
    fn lines_of_s2p_and_asp_become_ours() {
        let mgm = "MEDIAN=1 CENSUS_NCC_WIN=5 TSGM=3 OMP_NUM_THREADS=1";
        let multi = "REMOVESMALLCC=25 MINDIFF=1 CENSUS_NCC_WIN=7 SUBPIX=2";
        for (line, environment, expected, told) in [
            (
                "mgm -r -61 -R 12 -s vfit -t census -O 8 -confidence_consensusL c.tif l.tif r.tif d.tif",
                mgm,
                "mgm stereo --offsets --min-disparity=-12 --disparities=74 --cost=census --paths=8 \
                 --subpixel=equiangular --speckle-size=25 --census-window=5x5 --median=5 --max-difference=1 --threads=1 --no-sync --quiet \
                 --output d.tif --confidence c.tif -- l.tif r.tif",
                "",
            ),
            (
                "/opt/bin/mgm_multi -r 3 -R 9 -S 6 -s vfit -t census -O 16 -wl a.tif -wr b.tif -P1 16.0 -P2 64.0 l r d.tif",
                multi,
                "/opt/bin/mgm_multi stereo --offsets --min-disparity=-9 --disparities=7 --cost=census --paths=16 \
                 --subpixel=equiangular --speckle-size=25 --census-window=7x7 --p1=40 --p2=156 --median=0 \
                 --max-difference=1 --no-sync --quiet --output d.tif -- l r",
                "-S 6, -wl a.tif, -wr b.tif, MINDIFF=1",
            ),
            (
                "tiepoint stereo --like mgm -r -2.5 -R -0.5 -t sd -s cubic -O 2 --threads=2 l.tif r.tif d.tif c.tif b.tif",
                "TESTLRRL=0 OMP_NUM_THREADS=7",
                "tiepoint stereo --offsets --min-disparity=0 --disparities=4 --cost=ad --paths=4 --subpixel=parabola \
                 --speckle-size=25 --median=0 --right-view=off --no-sync --quiet --threads=2 --output d.tif --output-right b.tif \
                 -- l.tif r.tif",
                "the file of costs, c.tif, -t sd: ad in its place, -s cubic: parabola in its place",
            ),
            (
                "mgm -t census -Rd rd.tif -confidence_pkrL p.tif l r d c b",
                "CENSUS_NCC_WIN=5",
                "mgm stereo --offsets --min-disparity=-30 --disparities=61 --cost=census --paths=4 --subpixel=off \
                 --speckle-size=25 --census-window=5x5 --median=0 --max-difference=1 --no-sync --quiet --output d --output-right rd.tif -- l r",
                "-confidence_pkrL p.tif, the flow back beside -Rd, b, the file of costs, c",
            ),
            ("mgm --help", "", "mgm stereo --help", "before their value:"),
            ("tiepoint stereo l r -o d.tif", "", "tiepoint stereo l r -o d.tif", ""),
        ] {
            let (found, ignored) = of(line, environment).unwrap();
            assert_eq!(found, expected);
            assert!(ignored.unwrap_or_default().ends_with(told), "{told}");
        }
        for (line, why) in [
            ("mgm l r", "LEFT RIGHT DISPARITY"),
            ("mgm -r 5 -R 4 l r d", "not above"),
            ("mgm -r x -R 4 l r d", "expected a number"),
            ("mgm -Q 4 l r d", "expected -r -R"),
            ("mgm -inputCostVolume v.tif l r d", "optimize"),
            ("mgm l r d -r", "value is missing"),
            ("tiepoint stereo --like sgbm l r d", "expected mgm"),
        ] {
            let refused = of(line, "").unwrap_err().to_string();
            assert!(refused.contains(why), "{line}: {refused}");
        }
    }
}
