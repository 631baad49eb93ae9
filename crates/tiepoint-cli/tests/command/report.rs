//! The pages of `--report`, as files; `report/test` opens them in a browser.

use super::*;
use tiepoint::synth::StereoSceneOptions;

fn check(page: &str, what: &str) {
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"), "{what}: a whole page");
    assert!(page.contains("default-src 'none'"), "{what}: a policy that allows no request");
    assert_eq!(page.matches("<script").count(), 2, "{what}: data and script");
    assert_eq!(page.matches("</script>").count(), 2, "{what}: nothing else ends a script");
    for address in ["src=\"", "url(h", "@import", "<link", "<iframe", "<base"] {
        assert!(!page.contains(address), "{what}: {address} would be fetched");
    }
    let links = page.split("href=\"").skip(1);
    // The last two are in the script, where a view is saved as SVG: its pictures, and parts of the same file.
    let inside = ["data:image/jpeg;base64,", "${url}", "#${"];
    let outside: Vec<_> = links.filter(|link| !inside.iter().any(|start| link.starts_with(start))).collect();
    assert!(outside.is_empty(), "{what}: links are pictures inside: {:.60}", outside[0]);
}

#[test]
fn every_command_writes_a_page_that_stands_alone() {
    let folder = Folder::with("report", Folder::scene);
    let options = StereoSceneOptions::default().with_size(Size::new(160, 120)).with_disparities([2.0, 20.0]);
    folder.stereo("", &options);
    folder.put("truth.txt", folder.works("match a.png b.png --json"));
    folder.works("stereo l.png r.png --disparities 32 --output found.pfm");
    for line in [
        "detect a.png",
        "match a.png b.png",
        "register a.png b.png",
        "rectify l.png r.png",
        "stereo l.png r.png --disparities 32 --truth found.pfm",
        "evaluate homography a.png b.png truth.txt",
        "evaluate disparity found.pfm found.pfm",
    ] {
        let mut command = folder.tiepoint(format!("{line} --report page.html --json"));
        // A small scene may be too weak to rectify.
        if line.starts_with("rectify") && !command.output().unwrap().status.success() {
            continue;
        }
        succeeds(&mut command);
        let text = folder.text("page.html");
        check(&text, line);
        assert!(text.contains("class=\"view\"") && text.contains("class=\"still\""), "{line}: a view");
        folder.remove("page.html");
    }
    folder.works("evaluate homography truth.txt truth.txt --size 320x240 --report page.html");
    check(&folder.text("page.html"), "two homographies");
}

// Windows has no names with these characters.
#[cfg(unix)]
#[test]
fn a_collection_has_a_page_of_its_pairs() {
    let folder = Folder::with("report-collection", Folder::scene);
    folder.texture("<script>&ü\"'.png", SIZE, 9);
    let collect = "collect a.png b.png <script>&ü\"'.png --output pairs.db --report";
    folder.works(format!("{collect} page.html"));
    let text = folder.text("page.html");
    check(&text, "collect");
    assert!(text.contains("&lt;script&gt;") && !text.contains("<script>&"), "the name is text");
    assert!(text.contains("class=\"still-figures\""), "figures without a script");
    assert!(text.contains("<dt>verified pairs</dt><dd>1</dd>"), "the pair of the scene");
    // Wrong arguments are reported before the work begins.
    folder.refuses(format!("{collect} page.pdf"), 2, &[".html"]);
    folder.refuses(format!("{collect} page.html --report-limit 1K"), 2, &["--report-limit"]);
}

#[test]
fn two_runs_are_compared_by_their_pages() {
    let folder = Folder::with("report-compare", Folder::scene);
    let run = |line: &str| folder.works(format!("{line} --json"));
    let json = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    run("match a.png b.png --report before.html");
    run("match a.png b.png --ratio 0.6 --no-rematch --report after.html");
    let compare = "report --compare before.html after.html --output both.html --json";
    let told = json(&folder.works(compare));
    let text = folder.text("both.html");
    check(&text, "two runs");
    let count = |key: &str| told["views"][0][key].as_u64().unwrap();
    let inliers = |run: &str| told[run]["inliers"].as_u64().unwrap();
    // Every inlier of a run is in both, or in this run alone.
    assert_eq!(count("both") + count("lost"), inliers("before"), "{told}");
    assert_eq!(count("both") + count("gained"), inliers("after"), "{told}");
    assert!(count("lost") > 0 && count("both") > 0, "fewer matches pass the stricter ratio: {told}");
    assert!(text.contains("only before") && text.contains("--ratio 0.6"), "what differs, and both commands");
    // A run with itself.
    let told = json(&folder.works("report --compare before.html before.html --output both.html --json"));
    assert_eq!(
        told["views"][0],
        serde_json::json!({ "view": "matches", "both": inliers("before"), "gained": 0, "lost": 0 })
    );

    // The other commands.
    let options = StereoSceneOptions::default().with_size(Size::new(160, 120)).with_disparities([2.0, 20.0]);
    folder.stereo("", &options);
    run("stereo l.png r.png --disparities 32 --report before-stereo.html");
    run("stereo l.png r.png --disparities 32 --fill --report after-stereo.html");
    let told = json(
        &folder.works("report --compare before-stereo.html after-stereo.html --output both.html --json"),
    );
    check(&folder.text("both.html"), "disparities");
    let share = |key: &str| told["views"][0][key].as_f64().unwrap();
    assert!(share("gained") > 0.0 && share("lost") == 0.0 && share("different") == 0.0, "filled: {told}");
    run("register a.png b.png --report before-register.html");
    folder.works("report --compare before-register.html before-register.html --output both.html");
    check(&folder.text("both.html"), "a registration");
    folder.texture("c.png", SIZE, 9);
    run("collect a.png b.png --output one.db --report before-collect.html");
    run("collect a.png b.png c.png --output two.db --report after-collect.html");
    let told = json(
        &folder.works("report --compare before-collect.html after-collect.html --output both.html --json"),
    );
    let text = folder.text("both.html");
    check(&text, "collections");
    assert_eq!(
        [&told["views"][0]["both"], &told["views"][0]["gained"]],
        [1, 0],
        "c.png matches none: {told}"
    );
    assert!(text.contains("c.png"), "photographs of either run");

    // What cannot be compared.
    folder.put("other.html", "<p>no page of ours</p>");
    for (pages, said) in [
        ("before.html other.html", "expected a page that --report"),
        ("before.html before-stereo.html", "two pages of one command"),
        ("before.html no.html", "no.html"),
    ] {
        folder.refuses(format!("report --compare {pages} --output both.html"), 1, &[said]);
    }
    folder.refuses("report --compare before.html after.html --output both.png", 2, &[".html"]);
    folder.refuses("report --compare before.html after.html --output after.html", 2, &["replace the input"]);
}

// Windows has no names with these characters.
#[cfg(unix)]
#[test]
fn hostile_names_and_empty_results_make_a_page_too() {
    let folder = Folder::new("report-hostile");
    folder.make("x<");
    let name = "x</script><script>alert(1)&ü\"'.png";
    folder.texture(name, SIZE, 4);
    folder.write("dot.png", Image::filled(Size::new(1, 1), 1, 9_u8));
    folder.works(format!("match {name} {name} --report page.html"));
    let text = folder.text("page.html");
    check(&text, name);
    assert!(!text.contains("<script>alert"), "the name is text");
    for line in ["match dot.png dot.png --model none", "stereo dot.png dot.png --disparities 2"] {
        folder.works(format!("{line} --report page.html"));
        check(&folder.text("page.html"), line);
    }
    // Without any model the command fails, and the page shows what was found.
    folder.remove("page.html");
    folder.refuses(format!("match dot.png {name} --report page.html"), 1, &["needs at least"]);
    let text = folder.text("page.html");
    check(&text, "no model");
    assert!(text.contains("There are no matches to show"), "the page says so");
}

#[test]
fn the_limit_is_kept_and_wrong_names_are_refused_early() {
    let folder = Folder::with("report-limit", Folder::scene);
    folder.works("match a.png b.png --report page.html --report-limit 140K");
    let before = folder.read("page.html");
    assert!(before.len() <= 140 << 10, "no larger than asked for");
    let message = folder.fails("match a.png b.png --report page.html --report-limit 1K", 2);
    assert!(message.starts_with("tiepoint: --report-limit is 1024: expected"), "{message}");
    assert_eq!(folder.read("page.html"), before, "what was there is untouched");
    folder.refuses("match a.png b.png --report page.png", 2, &[".html"]);
    folder.fails("match a.png b.png --report no/page.html", 2);
    // Several pairs write one page each into a folder.
    folder.make("pages");
    folder.texture("c.png", SIZE, 1);
    folder.texture("d.png", SIZE, 2);
    folder.works("stereo a.png b.png c.png d.png --disparities 8 --report pages");
    for name in ["pages/a.html", "pages/c.html"] {
        check(&folder.text(name), name);
    }
}
