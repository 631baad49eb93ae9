//! The page that shows the demo.

use super::stereo::Depth;
use super::{Outcomes, Subject};
use std::fmt::Write;
use tiepoint::device::Cpu;

const STYLE: &str = "
:root { color-scheme: light dark; --line: #8884; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 1200px; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.8rem; } h2 { margin-top: 3rem; border-bottom: 1px solid var(--line); }
img { width: 100%; height: auto; border-radius: 4px; display: block; }
figure { margin: 0; } figcaption { font-size: .85rem; opacity: .8; margin: .3rem 0 1rem; }
.two { display: grid; grid-template-columns: 1fr 1fr; gap: 1rem; }
table { border-collapse: collapse; } th, td { padding: .25rem .8rem; text-align: right; border-bottom: 1px solid var(--line); }
th:first-child, td:first-child, td:nth-child(2) { text-align: left; }
.red { color: #e83028; } .blue { color: #286ef0; } .green { color: #2aa84a; }
";

const INTRODUCTION: &str = "
<p>Two pictures of the same plane, drawn by formula, so that the homography between them is known exactly.
Features are found in both, matched, and verified by a homography estimated from the matches alone; what was
found is then scored against the truth. Nothing here was tuned to these scenes: all options are defaults.</p>
<p><b>Right to 3 px</b>: the share of matches that end within 3 pixels of the true place.
<b>Corner error</b>: how far the found homography sends the corners of the picture from where they belong, on
average. <b>Position</b>: the root mean square distance of right matches from the truth.</p>
";

/// The whole page.
pub(super) fn html(subjects: &[Subject], outcomes: &[Outcomes], depth: &Depth, cpu: &Cpu) -> String {
    let mut out = String::from("<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n");
    let _ = write!(
        out,
        "<meta name=\"viewport\" content=\"width=device-width\">\n<title>tiepoint demo</title>\n"
    );
    let _ = write!(
        out,
        "<style>{STYLE}</style>\n<h1>tiepoint: two pictures of the same thing</h1>\n{INTRODUCTION}"
    );
    table(&mut out, outcomes);
    let _ = writeln!(out, "<p>Computed on {} threads ({}).</p>", cpu.threads(), cpu.level_name());
    for subject in subjects {
        scene(&mut out, subject);
    }
    stereo(&mut out, depth);
    let _ = writeln!(out, "<h2>Filters</h2>\n<div class=\"two\">");
    figure(&mut out, "filter-gauss.png", "Gaussian smoothing, σ = 4");
    figure(&mut out, "filter-sobel.png", "Magnitude of the Sobel gradient");
    figure(&mut out, "filter-hessian.png", "Magnitude of the Hessian's determinant: blobs of σ = 1.2");
    out.push_str("</div>\n</html>\n");
    out
}

fn table(out: &mut String, outcomes: &[Outcomes]) {
    out.push_str(
        "<table><tr><th>scene<th><th>features<th>matches<th>inliers<th>right to 3 px<th>position<th>corner error\
         <th>time</tr>\n",
    );
    for o in outcomes {
        let _ = writeln!(
            out,
            "<tr><td>{}<td>{}<td>{}, {}<td>{}<td>{}<td>{:.1} %<td>{:.2} px<td>{:.3} px<td>{:.0} ms</tr>",
            o.scene,
            o.detector,
            o.features[0],
            o.features[1],
            o.tie.matches.len(),
            o.tie.inliers.len(),
            o.scores.matching_accuracy[2] * 100.0,
            o.scores.position.rms,
            o.scores.corner_error,
            o.seconds * 1e3,
        );
    }
    out.push_str("</table>\n");
}

fn scene(out: &mut String, subject: &Subject) {
    let (name, title) = (subject.name, subject.title);
    let _ = writeln!(out, "<h2>{title}</h2>\n<div class=\"two\">");
    figure(out, &format!("{name}-a.png"), "The reference");
    figure(out, &format!("{name}-b.png"), "The moving image");
    for (detector, label) in [("sift", "SIFT"), ("surf", "SURF")] {
        let caption = format!(
            "The 400 strongest {label} features: circles of their scale with their direction, \
             <span class=\"red\">bright on dark</span> and <span class=\"blue\">dark on bright</span>"
        );
        figure(out, &format!("{name}-{detector}-features.png"), &caption);
    }
    out.push_str("</div>\n");
    let caption = "About a hundred of the SIFT matches; <span class=\"green\">green</span> ones agree with the homography found";
    figure(out, &format!("{name}-sift-matches.png"), caption);
    out.push_str("<div class=\"two\">\n");
    let caption = "The moving image laid on the reference, in squares: edges run on where the two fit";
    figure(out, &format!("{name}-sift-checker.png"), caption);
    let caption = "The reference in red, the moving image in cyan: grey where they fit";
    figure(out, &format!("{name}-sift-anaglyph.png"), caption);
    out.push_str("</div>\n");
}

fn stereo(out: &mut String, depth: &Depth) {
    let score = &depth.score;
    let _ = writeln!(
        out,
        "<h2>Dense stereo</h2>\n<p>Surfaces at known distances before two cameras side by side. The disparity is by \
         how many pixels a point lies further left in the right image. Of the {} pixels that both images see, \
         {:.1} % were given a disparity, {:.1} % have none or one that is off by more than 1 px, and the mean error \
         is {:.2} px; {:.0} ms.</p>\n<div class=\"two\">",
        score.pixels,
        score.density * 100.0,
        depth.bad() * 100.0,
        score.epe,
        depth.seconds * 1e3
    );
    figure(out, "stereo-left.png", "The left image");
    figure(out, "stereo-right.png", "The right image");
    figure(out, "stereo-found.png", "Disparities found, in pixels; black where there is none");
    figure(out, "stereo-truth.png", "The true disparities");
    out.push_str("</div>\n");
}

fn figure(out: &mut String, file: &str, caption: &str) {
    let _ = writeln!(
        out,
        "<figure><a href=\"{file}\"><img src=\"{file}\" alt=\"\" loading=\"lazy\"></a><figcaption>{caption}</figcaption></figure>"
    );
}
