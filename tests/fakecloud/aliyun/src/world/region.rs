//! Regions, their endpoints and zones.

/// Who can see a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RegionAccess {
    /// Every account.
    Open,
    /// Accounts that it was enabled for: finance and government regions.
    OnRequest,
    /// Nobody any more: it was shut down.
    Closed,
}

/// A region of the world.
#[derive(Debug, Clone)]
pub(crate) struct Region {
    pub(crate) id: String,
    pub(crate) access: RegionAccess,
}

const OPEN: &[&str] = &[
    "cn-qingdao",
    "cn-beijing",
    "cn-zhangjiakou",
    "cn-huhehaote",
    "cn-wulanchabu",
    "cn-hangzhou",
    "cn-shanghai",
    "cn-shenzhen",
    "cn-heyuan",
    "cn-guangzhou",
    "cn-chengdu",
    "cn-hongkong",
    "ap-northeast-1",
    "ap-northeast-2",
    "ap-southeast-1",
    "ap-southeast-3",
    "ap-southeast-5",
    "ap-southeast-6",
    "ap-southeast-7",
    "us-east-1",
    "us-west-1",
    "eu-central-1",
    "eu-west-1",
    "me-east-1",
];
const ON_REQUEST: &[&str] = &["cn-shanghai-finance-1", "cn-shenzhen-finance-1", "cn-north-2-gov-1"];
const CLOSED: &[&str] = &["ap-south-1", "ap-southeast-2"];

/// The regions of the real service.
pub(crate) fn all() -> Vec<Region> {
    let of = |ids: &[&str], access| -> Vec<Region> { ids.iter().map(|id| Region::new(id, access)).collect() };
    let mut regions = of(OPEN, RegionAccess::Open);
    regions.extend(of(ON_REQUEST, RegionAccess::OnRequest));
    regions.extend(of(CLOSED, RegionAccess::Closed));
    regions
}

impl Region {
    pub(crate) fn new(id: &str, access: RegionAccess) -> Self {
        Self {
            id: id.to_owned(),
            access,
        }
    }

    /// The ECS host that serves the region.
    pub(crate) fn endpoint(&self) -> String {
        match self.id.as_str() {
            "cn-hangzhou" | "cn-shanghai-finance-1" | "cn-shenzhen-finance-1" => {
                "ecs-cn-hangzhou.aliyuncs.com".to_owned()
            }
            "cn-north-2-gov-1" => "ecs.aliyuncs.com".to_owned(),
            id => format!("ecs.{id}.aliyuncs.com"),
        }
    }

    /// Its name for people, in the language asked for.
    pub(crate) fn local_name(&self, english: bool) -> String {
        let (chinese, name) = match self.id.as_str() {
            "cn-hangzhou" => ("华东1(杭州)", "China (Hangzhou)"),
            "cn-shanghai" => ("华东2(上海)", "China (Shanghai)"),
            "cn-beijing" => ("华北2(北京)", "China (Beijing)"),
            "cn-wulanchabu" => ("华北6(乌兰察布)", "China (Ulanqab)"),
            "cn-hongkong" => ("中国香港", "China (Hong Kong)"),
            "ap-southeast-1" => ("新加坡", "Singapore"),
            "us-west-1" => ("美国(硅谷)", "US (Silicon Valley)"),
            "eu-central-1" => ("德国(法兰克福)", "Germany (Frankfurt)"),
            id => (id, id),
        };
        if english { name } else { chinese }.to_owned()
    }
}

/// A zone's id: with a hyphen in China, without one elsewhere.
pub(crate) fn zone_id(region: &str, zone: char) -> String {
    if region.starts_with("cn-") {
        format!("{region}-{zone}")
    } else {
        format!("{region}{zone}")
    }
}
