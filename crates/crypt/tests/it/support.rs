//! Keys and volumes of the tests.
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use weir_crypt::{Encryption, Files, KeyError, KeyName, KeyProvider, MasterKey};

/// A few keys in memory; a version is a byte that fills the key.
#[derive(Default)]
pub(crate) struct Keys {
    pub(crate) versions: Mutex<BTreeMap<u32, u8>>,
}

impl Keys {
    pub(crate) fn with(versions: &[(u32, u8)]) -> Arc<Keys> {
        Arc::new(Keys { versions: Mutex::new(versions.iter().copied().collect()) })
    }

    pub(crate) fn add(&self, version: u32, fill: u8) {
        self.versions.lock().expect("held").insert(version, fill);
    }

    pub(crate) fn remove(&self, version: u32) {
        self.versions.lock().expect("held").remove(&version);
    }
}

impl KeyProvider for Keys {
    fn newest_version(&self, _id: u32) -> Result<u32, KeyError> {
        let versions = self.versions.lock().expect("held");
        versions.keys().max().copied().ok_or_else(|| KeyError("there are none".into()))
    }

    fn key(&self, name: KeyName) -> Result<MasterKey, KeyError> {
        let versions = self.versions.lock().expect("held");
        let fill = versions.get(&name.version).ok_or_else(|| KeyError("it is not here".into()))?;
        MasterKey::from_bytes(&[*fill; 32])
    }
}

pub(crate) fn encryption(keys: &Arc<Keys>) -> Encryption {
    Encryption { provider: keys.clone(), key_id: 1 }
}

pub(crate) const FILES: Files = Files { pages: "pages", is_plain: |name| name == "open" };
