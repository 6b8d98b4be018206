//! ZCubes: groups of files that were clustered together under one set of columns.
//!
//! delta-spark recognizes a clustered file by two tags and a provider on its `add`
//! (`ZCubeInfo.scala`; `clusteringProvider` is in the protocol, the tags are convention).

use std::collections::BTreeMap;

use crate::{action::AddFile, cuts};

/// Tag with the cube's UUID.
pub const ZCUBE_ID: &str = "ZCUBE_ID";
/// Tag with the clustering columns, a JSON array of dotted logical names.
pub const ZCUBE_ZORDER_BY: &str = "ZCUBE_ZORDER_BY";
/// Tag with the rewrite that made a file. A cube grows by further rewrites, so its files are in order
/// among themselves only as far as they share this.
pub(crate) const REWRITE: &str = "LAKEBED_REWRITE";
/// The provider delta-spark, Fabric and we write.
pub const PROVIDER: &str = "liquid";
/// A cube of this size is closed: it is never rewritten while its columns are current.
/// delta-spark: `optimize.clustering.mergeStrategy.minCubeSize.threshold`, 100 GiB.
pub const CLOSED_CUBE_BYTES: u64 = 100 << 30;
/// A new cube is packed to this size, so that it is closed even when its rows compress better
/// afterwards. delta-spark: `optimize.clustering.mergeStrategy.minCubeSize.targetCubeSize`, 150 GiB.
pub const TARGET_CUBE_BYTES: u64 = 150 << 30;

/// Builds the tags of a new file of a cube.
#[must_use]
pub fn tags(cube: &str, cluster_by: &[String]) -> BTreeMap<String, String> {
    let columns = serde_json::Value::from(cluster_by.to_vec()).to_string();
    BTreeMap::from([(ZCUBE_ID.to_owned(), cube.to_owned()), (ZCUBE_ZORDER_BY.to_owned(), columns)])
}

/// How a file relates to the table's clustering columns of today.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Membership {
    /// No clustering implementation has touched it.
    Unclustered,
    /// It belongs to a cube under the current columns and cuts.
    Current {
        /// The cube.
        cube: String,
    },
    /// It belongs to a cube made under other columns or other cuts.
    Stale,
    /// Another implementation clustered it: ours may touch it only when asked for everything.
    OtherProvider {
        /// That implementation.
        provider: String,
    },
}

/// Classifies a file. The order of the columns does not matter; `cuts` is the tag of the table's cuts,
/// where it has some.
#[must_use]
pub fn membership(file: &AddFile, cluster_by: &[String], cuts: Option<&str>) -> Membership {
    if let Some(provider) = file.clustering_provider.as_deref().filter(|p| *p != PROVIDER) {
        return Membership::OtherProvider { provider: provider.to_owned() };
    }
    let (Some(cube), Some(columns)) = (file.tag(ZCUBE_ID), file.tag(ZCUBE_ZORDER_BY)) else {
        return Membership::Unclustered;
    };
    let mut then: Vec<String> = serde_json::from_str(columns).unwrap_or_default();
    let mut now = cluster_by.to_vec();
    then.sort_unstable();
    now.sort_unstable();
    let is_current = then == now && file.tag(cuts::TAG) == cuts;
    if is_current { Membership::Current { cube: cube.to_owned() } } else { Membership::Stale }
}
