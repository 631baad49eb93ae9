//! A work folder keeps the results of a stage's version, so a change of what the stage computes must raise it.

use super::*;
use crate::changes::pool;
use tiepoint::collection::{
    Collection, CollectionOptions, PairChoice, PairOptions, PairSet, PhotographFeatures, Shard,
};
use tiepoint::device::Processor;
use tiepoint::feature::Descriptors;

/// For each stage all versions with the hash of what each computes from the photographs below. When a stage no longer
/// gives its last hash, raise its `VERSION` (in `crates/tiepoint/src/collection`) and add a line: otherwise work
/// folders of users would mix results of old and new code.
const RECORD: [(&str, &[(u64, u64)]); 4] = [
    // Version 2 fills pixels without data, of which these photographs have none.
    ("features", &[(1, 0xd7ca_5130_bd6d_4537), (2, 0xd7ca_5130_bd6d_4537)]),
    ("pairs", &[(1, 0xb1b4_2ddd_f8d2_3205)]),
    ("top_scale", &[(1, 0x1d3b_81ef_9fc3_62bc)]),
    (
        "match",
        &[
            (2, 0x9745_e459_8a4d_eab5),
            (3, 0x25e9_73e5_be31_8a53),
            (4, 0xc650_183c_10ee_1d86),
            (5, 0xbdc2_fff1_e3e9_d451),
            (6, 0x785c_aa2c_83ef_30f7),
        ],
    ),
];

/// FNV-1a, 64 bits.
fn hash(bytes: Vec<u8>) -> u64 {
    let start: u64 = 0xcbf2_9ce4_8422_2325;
    bytes.into_iter().fold(start, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

fn of_features(collection: &Collection) -> Vec<u8> {
    let mut bytes = Vec::new();
    for i in 0..collection.photographs().len() {
        let PhotographFeatures::Found(found) = collection.features(i).unwrap() else { panic!("found") };
        for k in &found.keypoints {
            bytes.extend(
                [k.x, k.y, k.scale, k.angle, k.response].iter().flat_map(|v| v.to_bits().to_le_bytes()),
            );
            bytes.extend([k.sign as u8, k.octave as u8, k.layer]);
        }
        let Descriptors::U8(values) = &found.descriptors else { panic!("bytes") };
        bytes.extend(values);
    }
    bytes
}

fn of_pairs(choices: &[(PairSet, usize)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (pairs, least) in choices {
        let PairSet::List(pairs) = pairs else { panic!("a list") };
        assert!(pairs.len() >= *least, "{pairs:?}");
        bytes.extend(pairs.iter().flatten().flat_map(|i| i.to_le_bytes()));
    }
    bytes
}

fn of_matches(collection: &Collection, cpu: &Cpu) -> Vec<u8> {
    let (mut bytes, mut kinds) = (Vec::new(), [0; 2]);
    let results = collection.results(cpu).unwrap();
    for pair in (0..results.blocks()).flat_map(|block| results.pairs_of(block).unwrap()) {
        kinds[usize::from(pair.essential.is_some())] += 1;
        bytes.extend([pair.a as u8, pair.b as u8, pair.configuration.code() as u8]);
        bytes.extend(pair.matches.iter().flatten().flat_map(|i| i.to_le_bytes()));
        bytes.extend(pair.inlier.iter().map(|inlier| u8::from(*inlier)));
        let models = [pair.fundamental, pair.essential, pair.homography];
        bytes.extend(models.iter().flatten().flatten().flat_map(|v| v.to_bits().to_le_bytes()));
    }
    assert!(kinds.iter().all(|pairs| *pairs > 0), "with and without an essential matrix: {kinds:?}");
    bytes
}

#[test]
fn a_changed_result_of_a_stage_needs_a_new_version() {
    let folder = Folder::new("collect-versions");
    folder.make("images");
    for (i, photograph) in pool(&folder, 2, 6).iter().enumerate() {
        folder.put(&format!("images/{i}.png"), photograph);
    }
    let (cpu, images) = (Cpu::sequential(), [folder.at("images")]);
    let devices = [Processor::from(cpu.clone())];
    let scan = |pairs: PairOptions| {
        let options = CollectionOptions::default().with_block(Some(4)).with_pairs(pairs);
        Collection::scan(folder.at("work"), &images, &options, &cpu).unwrap().0
    };
    let collection = scan(PairOptions::default());
    collection.extract(Shard::ALL, &devices).unwrap();
    let choose = |choice, least| {
        let options = PairOptions::default().with_choice(choice).with_overlap(2).with_neighbours(2);
        let pairs = scan(options.with_top_matches(3).with_top_partners(3)).choose_pairs(Shard::ALL, &cpu);
        (pairs.unwrap().unwrap(), least)
    };
    let chosen = [choose(PairChoice::Sequence, 20), choose(PairChoice::Gps, 4)];
    let top_scale = [choose(PairChoice::TopScale, 12)];
    let collection = scan(PairOptions::default().with_choice(PairChoice::Exhaustive));
    collection.choose_pairs(Shard::ALL, &cpu).unwrap();
    collection.match_pairs(Shard::ALL, &devices).unwrap();
    let found =
        [of_features(&collection), of_pairs(&chosen), of_pairs(&top_scale), of_matches(&collection, &cpu)];
    let record: serde_json::Value = serde_json::from_str(&folder.text("work/collection.json")).unwrap();
    let mut changed = Vec::new();
    for ((stage, versions), hash) in RECORD.iter().zip(found.map(hash)) {
        assert!(versions.is_sorted_by(|a, b| a.0 < b.0), "{stage}: each version once");
        let now = (record["stages"][stage].as_u64().unwrap(), hash);
        let (version, wanted) = versions.last().copied().unwrap();
        if now != (version, wanted) {
            let [before, now] =
                [(version, wanted), now].map(|(version, hash)| format!("({version}, {hash:#018x})"));
            changed.push(format!("{stage} was {before} and is {now}"));
        }
    }
    assert!(
        changed.is_empty(),
        "stages compute something else: {changed:?}; raise the VERSION of each in crates/tiepoint/src/collection \
         and add a line to RECORD"
    );
}
