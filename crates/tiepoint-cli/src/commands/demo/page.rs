//! The page that shows the demo.

use super::stereo::Depth;
use super::{DemoScene, Score};
use html_escape::{encode_double_quoted_attribute as attribute, encode_text as text};
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
pub(super) fn html(scenes: &[DemoScene], scores: &[Score], depth: &Depth, cpu: &Cpu) -> String {
    let table = table(scores);
    let (threads, level) = (cpu.threads(), cpu.level_name());
    let sections: String = scenes.iter().map(section).collect();
    let (stereo, filters) = (stereo(depth), filters());
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>tiepoint demo</title>\n\
         <style>{STYLE}</style>\n<h1>tiepoint: two pictures of the same thing</h1>\n{INTRODUCTION}{table}\
         <p>Computed on {threads} threads ({level}).</p>\n{sections}{stereo}{filters}</html>\n",
        level = text(&level),
    )
}

fn table(scores: &[Score]) -> String {
    let row = |s: &Score| {
        format!(
            "<tr><td>{}<td>{}<td>{}, {}<td>{}<td>{}<td>{:.1} %<td>{:.2} px<td>{:.3} px<td>{:.0} ms</tr>\n",
            text(s.scene),
            text(s.detector),
            s.features[0],
            s.features[1],
            s.tie.matches.len(),
            s.tie.inliers.len(),
            s.scores.matching_accuracy[2] * 100.0,
            s.scores.position.rms,
            s.scores.corner_error,
            s.seconds * 1e3,
        )
    };
    let head = "<table><tr><th>scene<th><th>features<th>matches<th>inliers<th>right to 3 px<th>position\
                <th>corner error<th>time</tr>\n";
    let rows: String = scores.iter().map(row).collect();
    format!("{head}{rows}</table>\n")
}

fn section(scene: &DemoScene) -> String {
    let name = scene.name;
    let features = |(detector, label): (&str, &str)| {
        let caption = format!(
            "The 400 strongest {label} features: circles of their scale with their direction, \
             <span class=\"red\">bright on dark</span> and <span class=\"blue\">dark on bright</span>"
        );
        figure(&format!("{name}-{detector}-features.png"), &caption)
    };
    let found = [
        figure(&format!("{name}-a.png"), "The reference"),
        figure(&format!("{name}-b.png"), "The moving image"),
        features(("sift", "SIFT")),
        features(("surf", "SURF")),
    ];
    let caption = "About a hundred of the SIFT matches; <span class=\"green\">green</span> ones agree with the \
                   homography found";
    let matches = figure(&format!("{name}-sift-matches.png"), caption);
    let squares = "The moving image warped onto the reference, in squares: edges run on where the two fit";
    let colours = "The reference in red, the moving image in cyan: grey where they fit";
    let warped = [
        figure(&format!("{name}-sift-checker.png"), squares),
        figure(&format!("{name}-sift-anaglyph.png"), colours),
    ];
    format!("<h2>{}</h2>\n{}{matches}{}", text(scene.title), two_columns(&found), two_columns(&warped))
}

fn stereo(depth: &Depth) -> String {
    let score = &depth.score;
    let figures = [
        figure("stereo-left.png", "The left image"),
        figure("stereo-right.png", "The right image"),
        figure("stereo-found.png", "Disparities found, in pixels; black where there is none"),
        figure("stereo-truth.png", "The true disparities"),
    ];
    format!(
        "<h2>Dense stereo</h2>\n<p>Surfaces at known distances before two cameras side by side. The disparity is by \
         how many pixels a point lies further left in the right image. Of the {} pixels that both images see, \
         {:.1} % were given a disparity, {:.1} % have none or one that is off by more than 1 px, and the mean error \
         is {:.2} px; {:.0} ms.</p>\n{}",
        score.pixels,
        score.density * 100.0,
        depth.bad() * 100.0,
        score.epe,
        depth.seconds * 1e3,
        two_columns(&figures),
    )
}

fn filters() -> String {
    let figures = [
        figure("filter-gauss.png", "Gaussian smoothing, σ = 4"),
        figure("filter-sobel.png", "Magnitude of the Sobel gradient"),
        figure("filter-hessian.png", "Magnitude of the Hessian's determinant: blobs of σ = 1.2"),
    ];
    format!("<h2>Filters</h2>\n{}", two_columns(&figures))
}

fn two_columns(figures: &[String]) -> String {
    format!("<div class=\"two\">\n{}</div>\n", figures.concat())
}

/// A picture of the folder that links to itself; the caption is HTML.
fn figure(file: &str, caption: &str) -> String {
    let file = attribute(file);
    format!(
        "<figure><a href=\"{file}\"><img src=\"{file}\" alt=\"\" loading=\"lazy\"></a>\
         <figcaption>{caption}</figcaption></figure>\n"
    )
}
