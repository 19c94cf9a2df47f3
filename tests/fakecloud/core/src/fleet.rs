//! What a demo fleet is made of, in every cloud alike: the teams that own
//! machines, what they run, and the texts that break careless programs.

use crate::random::Random;

/// A team that owns machines.
pub struct Team {
    /// Value of ownership tags.
    pub name: &'static str,
    /// A person of the team.
    pub owner: &'static str,
    /// What the team's machines are called after.
    pub workloads: &'static [&'static str],
}

/// The teams of the demo organization; half of them name things in Chinese.
pub const TEAMS: &[Team] = &[
    Team {
        name: "llm-pretraining",
        owner: "mei.lin",
        workloads: &["pretrain", "tokenizer", "eval-sweep"],
    },
    Team {
        name: "推荐算法",
        owner: "王小明",
        workloads: &["推荐训练", "特征抽取", "离线评测"],
    },
    Team {
        name: "speech",
        owner: "asha.rao",
        workloads: &["asr-train", "tts-serve"],
    },
    Team {
        name: "自动驾驶感知",
        owner: "李雷",
        workloads: &["感知训练", "仿真渲染"],
    },
    Team {
        name: "search-ranking",
        owner: "tom.becker",
        workloads: &["ranker-serve", "embedder"],
    },
    Team {
        name: "video-render",
        owner: "韩梅梅",
        workloads: &["转码", "render-node"],
    },
];

/// Texts that are legal in names and tags, and hostile to everything that
/// prints them: exposition formats, HTML, CSV, JSON, shells.
pub const HOSTILE_TEXTS: &[&str] = &[
    "quote\" and back\\slash",
    "two\nlines",
    "<script>alert('gpu')</script>",
    "=cmd|' /C calc'!A0",
    "emoji \u{1f680} and rtl \u{202e}txet",
    "{curly=\"brace\"} # HELP",
    "  blanks  ",
];

/// How a share of the fleet is paid for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purchase {
    /// Pay as you go.
    OnDemand,
    /// Interruptible.
    Spot,
}

impl Purchase {
    /// About a quarter of a demo fleet is spot.
    pub fn draw(random: &mut Random) -> Self {
        if random.chance(25) { Self::Spot } else { Self::OnDemand }
    }
}

/// A machine name such as `pretrain-017`.
pub fn machine_name(random: &mut Random, team: &Team) -> String {
    let workload = random.pick(team.workloads);
    format!("{workload}-{:03}", random.below(1000))
}
