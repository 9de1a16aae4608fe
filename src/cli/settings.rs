//! What the arguments and the environment mean together.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use etcetera::{AppStrategy, AppStrategyArgs, choose_app_strategy};

use super::args::Common;
use super::config::{Config, TellStewards};
use super::error::{Failure, NoticeFailure};
use crate::atlas::Configure;
use crate::console::{Colour, Glyphs, Look, Theme};
use crate::gateway::connect::Folders;
use crate::runtime::extension::Registry;
use crate::runtime::notices::{Off, SecretSource, Webhooks};
use crate::runtime::snapshot::Access;

/// What notices are signed with, where that is not to be in a file.
pub(super) const SECRET_VARIABLE: &str = "CRA_WEBHOOK_SECRET";

/// What holds for this run.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    /// Extensions that are part of this program.
    pub(super) own: Registry,
    data_dir: Option<PathBuf>,
    socket: Option<PathBuf>,
    extensions: Option<PathBuf>,
    pub(super) head_file: Option<PathBuf>,
    pub(super) quota: Option<u64>,
    pub(super) http: Option<SocketAddr>,
    pub(super) operator: String,
    pub(super) access: Access,
    look: Look,
    theme: Option<Theme>,
    pub(super) manner: Manner,
}

/// Whose socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whose {
    /// The console's, for real agents.
    Console,
    /// The demo's, for its own.
    Demo,
}

/// How the console shows itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    /// On the whole screen.
    Screen,
    /// Line by line.
    Linear,
}

impl Settings {
    pub(super) fn from_args(common: &Common, own: Registry) -> Self {
        Self {
            own,
            data_dir: common.data_dir.clone(),
            socket: common.socket.clone(),
            extensions: common.extensions.clone(),
            head_file: common.head_file.clone(),
            quota: common.quota,
            http: common.http,
            operator: common
                .operator
                .clone()
                .filter(|name| !name.trim().is_empty())
                .unwrap_or_else(whoami),
            access: if common.read_only {
                Access::ReadOnly
            } else {
                Access::Write
            },
            manner: if common.linear {
                Manner::Linear
            } else {
                Manner::Screen
            },
            look: Look {
                glyphs: if common.ascii {
                    Glyphs::Ascii
                } else {
                    Glyphs::Rounded
                },
                colour: if std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()) {
                    Colour::Plain
                } else {
                    Colour::Ansi
                },
                ..Look::default()
            },
            theme: common.theme.map(Theme::from),
        }
    }

    /// Refuses a command that writes to the record, where it was said to only look.
    pub(super) fn may_write(&self, command: &'static str) -> Result<(), Failure> {
        match self.access {
            Access::Write => Ok(()),
            Access::ReadOnly => Err(Failure::ReadOnly(command)),
        }
    }

    /// How the console looks and behaves: what was typed, and the user's own file.
    pub(super) fn config(&self) -> Result<(Look, Config), Failure> {
        let file = Self::config_file();
        // Without a home there is no file to read.
        let mut config = match file {
            Ok(file) => Config::load(&file).map_err(Failure::Config)?,
            Err(_) => Config::default(),
        };
        config.theme = self.theme.unwrap_or(config.theme);
        let glyphs = match self.look.glyphs {
            Glyphs::Ascii => Glyphs::Ascii,
            Glyphs::Rounded => config.glyphs,
        };
        let look = Look {
            glyphs,
            ..self.look
        };
        Ok((look, config))
    }

    /// The user's own file.
    pub(super) fn config_file() -> Result<PathBuf, Failure> {
        Ok(folders()?.in_config_dir("config.yaml"))
    }

    /// The folder of the store.
    pub(super) fn data_dir(&self) -> Result<PathBuf, Failure> {
        match &self.data_dir {
            Some(folder) => Ok(folder.clone()),
            None => Ok(folders()?.data_dir()),
        }
    }

    /// The folder of the demo's own store: what is played there stays out of the real record.
    pub(super) fn demo_dir(&self) -> Result<PathBuf, Failure> {
        match &self.data_dir {
            Some(folder) => Ok(folder.clone()),
            None => Ok(folders()?.in_data_dir("demo")),
        }
    }

    /// Where agents reach the console, or the demo. A store that is named has a socket of its own.
    pub(super) fn socket(&self, whose: Whose) -> Result<PathBuf, Failure> {
        let name = match whose {
            Whose::Console => "console.sock",
            Whose::Demo => "demo.sock",
        };
        if let Some(named) = &self.socket {
            return Ok(named.clone());
        }
        let runtime = folders()?.in_runtime_dir(name);
        let beside = |folder: PathBuf| folder.join("run").join(name);
        Ok(match (&self.data_dir, runtime) {
            (Some(folder), _) => beside(folder.clone()),
            (None, Some(path)) => path,
            (None, None) => beside(folders()?.data_dir()),
        })
    }

    /// Where the console is, as other programs have to be told. All of it: what they find in their own environment
    /// may be somebody else's word.
    pub(super) fn place(&self) -> Result<Vec<String>, Failure> {
        let named = [
            ("--data-dir", self.data_dir()?),
            ("--socket", self.socket(Whose::Console)?),
        ];
        let mut place = Vec::new();
        for (name, path) in named {
            let failed = |error| Failure::Read(path.clone(), error);
            let path = std::path::absolute(&path).map_err(failed)?;
            place.extend([name.to_owned(), path.to_string_lossy().into_owned()]);
        }
        Ok(place)
    }

    /// Where agents keep their settings, seen from a project: the folder this is run in, if none is named.
    pub(super) fn agent_folders(project: Option<&Path>) -> Result<Folders, Failure> {
        let project = project.unwrap_or(Path::new("."));
        let failed = |error| Failure::Read(project.to_owned(), error);
        let moved = |name: &str| {
            let path = std::env::var_os(name).filter(|it| !it.is_empty());
            path.and_then(|it| std::path::absolute(it).ok())
        };
        // Tidied up by hand: a folder that is not there yet has no real name.
        let project = std::path::absolute(project).map_err(failed)?;
        Ok(Folders {
            project: project.components().collect(),
            home: etcetera::home_dir().map_err(|_| Failure::NoHome)?,
            claude: moved("CLAUDE_CONFIG_DIR"),
            codex: moved("CODEX_HOME"),
            copilot: moved("COPILOT_HOME"),
        })
    }

    /// The list of extensions.
    pub(super) fn extensions_file(&self) -> Result<PathBuf, Failure> {
        match &self.extensions {
            Some(named) => Ok(named.clone()),
            None => Ok(folders()?.in_config_dir("extensions.yaml")),
        }
    }

    /// The extensions that may be asked: those of this program, and those of the operator's list.
    pub(super) fn extensions(&self) -> Result<Registry, Failure> {
        let own = self.own.clone();
        let Ok(file) = self.extensions_file() else {
            return Ok(own);
        };
        if self.extensions.is_none() && !file.exists() {
            return Ok(own);
        }
        own.with_list(&file).map_err(Failure::Extensions)
    }

    /// Changes that this program makes to manifests before they are proven.
    pub(super) fn configure(&self) -> Configure {
        self.own.configuration()
    }

    /// Whether stewards are told, by a console on the store in `folder`.
    pub(super) fn webhooks(
        whose: Whose,
        wanted: TellStewards,
        folder: &Path,
    ) -> Result<Webhooks, Failure> {
        match (whose, wanted) {
            (Whose::Demo, _) => Ok(Webhooks::Off(Off::Demo)),
            (Whose::Console, TellStewards::Off) => Ok(Webhooks::Off(Off::Setting)),
            (Whose::Console, TellStewards::On) => Ok(Webhooks::On(Self::webhook_secret(folder)?)),
        }
    }

    /// What notices are signed with.
    pub(super) fn webhook_secret(folder: &Path) -> Result<SecretSource, Failure> {
        let given = std::env::var_os(SECRET_VARIABLE).filter(|it| !it.is_empty());
        let Some(given) = given else {
            return Ok(SecretSource::Folder(folder.to_owned()));
        };
        let secret = given.to_string_lossy().parse();
        Ok(SecretSource::Given(secret.map_err(NoticeFailure::Given)?))
    }

    /// The folder whose Atlases are in force when none is named.
    pub(super) fn atlas_dir() -> Result<PathBuf, Failure> {
        Ok(folders()?.in_config_dir("atlas"))
    }
}

fn folders() -> Result<impl AppStrategy, Failure> {
    choose_app_strategy(AppStrategyArgs {
        top_level_domain: String::new(),
        author: String::new(),
        app_name: "cra".to_owned(),
    })
    .map_err(|_| Failure::NoHome)
}

/// `user@host`, as far as the machine says.
fn whoami() -> String {
    let user = ["USER", "LOGNAME"]
        .iter()
        .find_map(|name| std::env::var(name).ok());
    let user = user
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "operator".to_owned());
    let host = fs::read_to_string("/etc/hostname").unwrap_or_default();
    match host.trim() {
        "" => user,
        host => format!("{user}@{host}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers B16
    #[test]
    fn the_demo_tells_nobody_whatever_the_settings_say() {
        let folder = Path::new("/nonexistent");
        for wanted in [TellStewards::On, TellStewards::Off] {
            let webhooks = Settings::webhooks(Whose::Demo, wanted, folder).unwrap();
            assert!(matches!(webhooks, Webhooks::Off(Off::Demo)), "{webhooks:?}");
        }
        let webhooks = Settings::webhooks(Whose::Console, TellStewards::Off, folder).unwrap();
        assert!(
            matches!(webhooks, Webhooks::Off(Off::Setting)),
            "{webhooks:?}"
        );
        let webhooks = Settings::webhooks(Whose::Console, TellStewards::On, folder).unwrap();
        assert!(matches!(webhooks, Webhooks::On(_)), "{webhooks:?}");
    }
}
