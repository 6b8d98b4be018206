//! Packs selected files into bins, and bins into cubes.

use super::{Bin, Reason, SelectionPolicy};
use crate::{action::AddFile, sizing::live_bytes, zcube};

/// Packs files in order of cube and path. The first bin joins the open cube, if there is one.
///
/// A bin ends when the next file does not fit and its cube is closed: a cube that is left open is
/// work for the next run.
pub(super) fn pack(
    mut chosen: Vec<(&AddFile, Reason)>,
    joined: Option<(&str, u64)>,
    policy: &SelectionPolicy,
) -> Vec<Bin> {
    chosen.sort_by(|(a, _), (b, _)| {
        (a.tag(zcube::ZCUBE_ID), &a.path).cmp(&(b.tag(zcube::ZCUBE_ID), &b.path))
    });
    let mut cube = joined.map(|(cube, _)| cube.to_owned());
    let mut cube_bytes = joined.map_or(0, |(_, bytes)| bytes);
    let mut bin_bytes = 0;
    let mut bins: Vec<Bin> = Vec::new();
    for (file, reason) in chosen {
        let bytes = live_bytes(file);
        let fits =
            cube_bytes + bytes <= policy.bin_bytes_max || cube_bytes < policy.closed_cube_bytes;
        match bins.last_mut() {
            Some(bin) if fits => {
                bin.files.push((file.clone(), reason));
                cube_bytes += bytes;
                bin_bytes += bytes;
            }
            previous => {
                cube_bytes = if previous.is_none() { cube_bytes + bytes } else { bytes };
                bin_bytes = bytes;
                bins.push(Bin { files: vec![(file.clone(), reason)], cube: cube.take() });
            }
        }
    }
    // A rest of less than a file would be a small file of its own.
    if bins.len() > 1 && bin_bytes < policy.target_file_size.0 {
        let rest = bins.pop().map(|bin| bin.files);
        if let Some(previous) = bins.last_mut() {
            previous.files.extend(rest.into_iter().flatten());
        }
    }
    bins
}
