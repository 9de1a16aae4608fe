//! Merkle tree of RFC 6962 over the entries of the log.
//!
//! Its root commits to all entries so far in 32 bytes. The tree grows one entry at a time and keeps
//! only the roots of its complete subtrees, so a log of any length takes a few hundred bytes.

use sha2::{Digest as _, Sha256};

use crate::base::digest::Digest;

/// Append-only Merkle tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MerkleTree {
    size: u64,
    /// Roots of the complete subtrees, the largest first: one for every bit set in `size`.
    subtree_roots: Vec<Digest>,
}

impl MerkleTree {
    /// Number of entries.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Adds an entry.
    pub fn push(&mut self, entry: &[u8]) {
        let mut node = hash(LEAF, &[entry]);
        // Subtrees of equal size are joined: one for each bit that the addition carries over.
        for _ in 0..self.size.trailing_ones() {
            if let Some(left) = self.subtree_roots.pop() {
                node = join(&left, &node);
            }
        }
        self.subtree_roots.push(node);
        self.size += 1;
    }

    /// Root hash over all entries so far.
    #[must_use]
    pub fn root(&self) -> Digest {
        let mut from_the_right = self.subtree_roots.iter().rev();
        let Some(last) = from_the_right.next() else {
            return Digest::of([]);
        };
        from_the_right.fold(*last, |right, left| join(left, &right))
    }
}

/// Domain separation of entries and nodes: an entry cannot pass for a node.
const LEAF: u8 = 0;
const NODE: u8 = 1;

fn join(left: &Digest, right: &Digest) -> Digest {
    hash(NODE, &[left.as_bytes(), right.as_bytes()])
}

fn hash(kind: u8, parts: &[&[u8]]) -> Digest {
    let mut hasher = Sha256::new();
    hasher.update([kind]);
    for part in parts {
        hasher.update(part);
    }
    Digest::from_bytes(hasher.finalize().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition of the RFC: split at the largest power of two below the size.
    fn by_definition(entries: &[Vec<u8>]) -> Digest {
        match entries {
            [] => Digest::of([]),
            [one] => hash(LEAF, &[one]),
            _ => {
                let split = entries.len().next_power_of_two() / 2;
                let (left, right) = entries.split_at(split);
                join(&by_definition(left), &by_definition(right))
            }
        }
    }

    #[test]
    fn root_matches_the_rfc_definition_at_every_size() {
        let entries: Vec<Vec<u8>> = (0_u8..130).map(|n| vec![n; usize::from(n % 7)]).collect();
        let mut tree = MerkleTree::default();
        for (size, entry) in entries.iter().enumerate() {
            assert_eq!(tree.root(), by_definition(&entries[..size]), "{size}");
            tree.push(entry);
        }
        assert_eq!(tree.root(), by_definition(&entries));
        assert_eq!(tree.size(), 130);
    }

    /// Roots from the tests of the reference implementation of Certificate Transparency.
    #[test]
    fn root_matches_known_answers() {
        let entries: [&[u8]; 3] = [b"", b"\x00", b"\x10"];
        let roots = [
            "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
            "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
            "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
        ];
        let mut tree = MerkleTree::default();
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(tree.root().to_string(), empty);
        for (entry, root) in entries.iter().zip(roots) {
            tree.push(entry);
            assert_eq!(tree.root().to_string(), root);
        }
    }

    #[test]
    fn an_entry_cannot_pass_for_a_node() {
        let (mut two, mut one) = (MerkleTree::default(), MerkleTree::default());
        two.push(b"a");
        two.push(b"b");
        let [a, b] = [hash(LEAF, &[b"a"]), hash(LEAF, &[b"b"])];
        one.push(&[a.as_bytes().as_slice(), b.as_bytes()].concat());
        assert_ne!(one.root(), two.root());
    }
}
