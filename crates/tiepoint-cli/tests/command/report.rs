//! The pages of `--report`, as files; `report/test` opens them in a browser.

use super::{Folder, SIZE, fails, tiepoint, works};
use tiepoint::image::{AnyImage, Image, Size};
use tiepoint::synth::{StereoScene, StereoSceneOptions};

/// What must hold of every page.
fn check(page: &str, what: &str) {
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"), "{what}: a whole page");
    assert!(page.contains("default-src 'none'"), "{what}: a policy that allows no request");
    assert_eq!(page.matches("<script").count(), 2, "{what}: data and script");
    assert_eq!(page.matches("</script>").count(), 2, "{what}: nothing else ends a script");
    for address in ["src=\"", "url(h", "@import", "<link", "<iframe", "<base"] {
        assert!(!page.contains(address), "{what}: {address} would be fetched");
    }
    let links = page.matches("href=\"").count() - page.matches("href=\"data:image/jpeg;base64,").count();
    assert_eq!(links, 0, "{what}: links are pictures inside");
}

#[test]
fn every_command_writes_a_page_that_stands_alone() {
    let folder = Folder::new("report");
    let (a, b, _) = folder.scene();
    let pair = StereoSceneOptions::default().with_size(Size::new(160, 120)).with_disparities([2.0, 20.0]);
    let pair = StereoScene::new(&pair).unwrap().render::<u8>(&tiepoint::device::Cpu::sequential());
    let left = folder.write("left.png", &pair.left.into());
    let right = folder.write("right.png", &pair.right.into());
    let (truth, page, found) = (folder.at("truth.txt"), folder.at("page.html"), folder.at("found.pfm"));
    let json = works(&["match", &a, &b, "--json"]);
    std::fs::write(&truth, &json).unwrap();
    let commands: [&[&str]; 6] = [
        &["match", &a, &b],
        &["register", &a, &b],
        &["rectify", &left, &right],
        &["stereo", &left, &right, "--disparities", "32", "--output", &found, "--truth", &found],
        &["evaluate", "homography", &a, &b, &truth],
        &["evaluate", "disparity", &found, &found],
    ];
    for command in commands {
        // The truth is there from the second time on.
        if command[0] == "stereo" {
            works(&command[..7]);
        }
        let with: Vec<&str> = command.iter().copied().chain(["--report", &page, "--json"]).collect();
        let output = tiepoint(&with);
        // A small scene may not determine the cameras.
        if command[0] == "rectify" && !output.status.success() {
            continue;
        }
        assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
        let text = std::fs::read_to_string(&page).unwrap();
        check(&text, command[0]);
        assert!(text.contains("class=\"view\"") && text.contains("class=\"still\""), "{command:?}: a view");
        std::fs::remove_file(&page).unwrap();
    }
    works(&["evaluate", "homography", &truth, &truth, "--size", "320x240", "--report", &page]);
    check(&std::fs::read_to_string(&page).unwrap(), "two homographies");
}

#[test]
fn a_collection_has_a_page_of_its_pairs() {
    let folder = Folder::new("report-collection");
    let (a, b, _) = folder.scene();
    let hostile = folder.texture("<script>&ü\"'.png", SIZE, 9);
    let (page, database) = (folder.at("page.html"), folder.at("pairs.db"));
    let collect = ["collect", &a, &b, &hostile, "--output", &database];
    works(&[&collect[..], &["--report", &page]].concat());
    let text = std::fs::read_to_string(&page).unwrap();
    check(&text, "collect");
    assert!(text.contains("&lt;script&gt;") && !text.contains("<script>&"), "the name is text");
    assert!(text.contains("class=\"still-figures\""), "figures without a script");
    assert!(text.contains("<dt>verified pairs</dt><dd>1</dd>"), "the pair of the scene");
    // What is wrong is said before the work begins.
    let message = fails(&[&collect[..], &["--report", &folder.at("page.pdf")]].concat(), 2);
    assert!(message.contains(".html"), "{message}");
    let message = fails(&[&collect[..], &["--report", &page, "--report-limit", "1K"]].concat(), 2);
    assert!(message.contains("--report-limit"), "{message}");
}

#[test]
fn hostile_names_and_empty_results_make_a_page_too() {
    let folder = Folder::new("report-hostile");
    std::fs::create_dir(folder.at("x<")).unwrap();
    let name = "x</script><script>alert(1)&ü\"'.png";
    let hostile = folder.texture(name, SIZE, 4);
    let dot = folder.write("dot.png", &AnyImage::U8(Image::filled(Size::new(1, 1), 1, 9)));
    let page = folder.at("page.html");
    works(&["match", &hostile, &hostile, "--report", &page]);
    let text = std::fs::read_to_string(&page).unwrap();
    check(&text, name);
    assert!(!text.contains("<script>alert"), "the name is text");
    works(&["match", &dot, &dot, "--model", "none", "--report", &page]);
    check(&std::fs::read_to_string(&page).unwrap(), "a pixel");
    works(&["stereo", &dot, &dot, "--disparities", "2", "--report", &page]);
    check(&std::fs::read_to_string(&page).unwrap(), "a pixel's disparity");
    // Nothing agrees: the command fails and shows what there was.
    std::fs::remove_file(&page).unwrap();
    let message = fails(&["match", &dot, &hostile, "--report", &page], 1);
    assert!(message.contains("needs at least"), "{message}");
    let text = std::fs::read_to_string(&page).unwrap();
    check(&text, "no model");
    assert!(text.contains("no model has confirmed"), "the page says so");
}

#[test]
fn the_limit_is_kept_and_wrong_names_are_refused_early() {
    let folder = Folder::new("report-limit");
    let (a, b, _) = folder.scene();
    let page = folder.at("page.html");
    works(&["match", &a, &b, "--report", &page, "--report-limit", "140K"]);
    assert!(std::fs::metadata(&page).unwrap().len() <= 140 << 10, "no larger than asked for");
    let before = std::fs::read(&page).unwrap();
    let message = fails(&["match", &a, &b, "--report", &page, "--report-limit", "1K"], 2);
    assert!(message.starts_with("tiepoint: --report-limit is 1024: expected"), "{message}");
    assert_eq!(std::fs::read(&page).unwrap(), before, "what was there is untouched");
    assert!(
        fails(&["match", &a, &b, "--report", &folder.at("page.png")], 2).contains(".html"),
        "a wrong name"
    );
    fails(&["match", &a, &b, "--report", &folder.at("no/page.html")], 2);
    fails(&["stereo", &a, &b, "--truth", &a], 2);
    // For several pairs a folder is filled.
    let pages = folder.at("pages");
    std::fs::create_dir(&pages).unwrap();
    let (c, d) = (folder.texture("c.png", SIZE, 1), folder.texture("d.png", SIZE, 2));
    works(&["stereo", &a, &b, &c, &d, "--disparities", "8", "--report", &pages]);
    for name in ["a.html", "c.html"] {
        check(&std::fs::read_to_string(folder.at(&format!("pages/{name}"))).unwrap(), name);
    }
}
