//! Settings of a run, from the arguments and the environment.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use etcetera::{AppStrategy, AppStrategyArgs, choose_app_strategy};

use super::args::CommonArgs;
use super::config::{Config, NoticeDelivery};
use super::error::{Failure, NoticeFailure};
use crate::atlas::ManifestTransform;
use crate::console::{Appearance, ColourMode, Glyphs, Theme};
use crate::gateway::agents::CodingAgent;
use crate::gateway::connect::Folders;
use crate::runtime::extension::Registry;
use crate::runtime::notices::{NoticesOff, SecretSource, Webhooks};
use crate::runtime::snapshot::ConsoleAccess;
use crate::store::StoreUrl;

/// Environment variable with the signing secret of notices, used instead of a file.
pub(super) const SECRET_VARIABLE: &str = "CRA_WEBHOOK_SECRET";

/// Settings of this run.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    /// Extensions that are part of this program.
    pub(super) own_extensions: Registry,
    data_dir: Option<PathBuf>,
    socket: Option<PathBuf>,
    extensions: Option<PathBuf>,
    pub(super) head_file: Option<PathBuf>,
    pub(super) quota: Option<u64>,
    pub(super) http: Option<SocketAddr>,
    pub(super) operator: String,
    pub(super) access: ConsoleAccess,
    look: Appearance,
    theme: Option<Theme>,
    pub(super) display_mode: DisplayMode,
}

/// Owner of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SocketOwner {
    /// The console, for real agents.
    Console,
    /// The demo, for its own agents.
    Demo,
}

/// Presentation of the console.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DisplayMode {
    /// Full screen.
    Screen,
    /// Line by line.
    Linear,
}

impl Settings {
    pub(super) fn from_args(common: &CommonArgs, own_extensions: Registry) -> Self {
        Self {
            own_extensions,
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
                ConsoleAccess::ReadOnly
            } else {
                ConsoleAccess::Write
            },
            display_mode: if common.linear {
                DisplayMode::Linear
            } else {
                DisplayMode::Screen
            },
            look: Appearance {
                glyphs: if common.ascii {
                    Glyphs::Ascii
                } else {
                    Glyphs::Rounded
                },
                colour: if std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()) {
                    ColourMode::Plain
                } else {
                    ColourMode::Ansi
                },
                ..Appearance::default()
            },
            theme: common.theme.map(Theme::from),
        }
    }

    /// Rejects a command that writes to the record in read-only mode.
    pub(super) fn may_write(&self, command: &'static str) -> Result<(), Failure> {
        match self.access {
            ConsoleAccess::Write => Ok(()),
            ConsoleAccess::ReadOnly => Err(Failure::ReadOnly(command)),
        }
    }

    /// Appearance and behaviour of the console: typed options, and the user's file.
    pub(super) fn config(&self) -> Result<(Appearance, Config), Failure> {
        let file = Self::config_file();
        // Without a home folder the file cannot exist.
        let mut config = match file {
            Ok(file) => Config::load(&file).map_err(Failure::Config)?,
            Err(_) => Config::default(),
        };
        config.theme = self.theme.unwrap_or(config.theme);
        let glyphs = match self.look.glyphs {
            Glyphs::Ascii => Glyphs::Ascii,
            Glyphs::Rounded => config.glyphs,
        };
        let look = Appearance {
            glyphs,
            ..self.look
        };
        Ok((look, config))
    }

    /// Path of the user's configuration file.
    pub(super) fn config_file() -> Result<PathBuf, Failure> {
        Ok(folders()?.in_config_dir("config.yaml"))
    }

    /// Folder of the store.
    pub(super) fn data_dir(&self) -> Result<PathBuf, Failure> {
        match &self.data_dir {
            Some(folder) => Ok(folder.clone()),
            None => Ok(folders()?.data_dir()),
        }
    }

    /// Location of the store.
    pub(super) fn store_url(&self) -> Result<StoreUrl, Failure> {
        Ok(StoreUrl::in_folder(self.data_dir()?))
    }

    /// Folder of the demo's own store: demo data stays out of the real record.
    pub(super) fn demo_dir(&self) -> Result<PathBuf, Failure> {
        match &self.data_dir {
            Some(folder) => Ok(folder.clone()),
            None => Ok(folders()?.in_data_dir("demo")),
        }
    }

    /// Socket for agents of the console, or of the demo. A named store has its own socket.
    pub(super) fn socket(&self, whose: SocketOwner) -> Result<PathBuf, Failure> {
        let name = match whose {
            SocketOwner::Console => "console.sock",
            SocketOwner::Demo => "demo.sock",
        };
        if let Some(named) = &self.socket {
            return Ok(named.clone());
        }
        let runtime = folders()?.in_runtime_dir(name);
        let in_data_dir = |folder: PathBuf| folder.join("run").join(name);
        Ok(match (&self.data_dir, runtime) {
            (Some(folder), _) => in_data_dir(folder.clone()),
            (None, Some(path)) => path,
            (None, None) => in_data_dir(folders()?.data_dir()),
        })
    }

    /// Location of the console, as options for other programs. All options are given: another process may
    /// control the environment of those programs.
    pub(super) fn console_options(&self) -> Result<Vec<String>, Failure> {
        let named = [
            ("--data-dir", self.data_dir()?),
            ("--socket", self.socket(SocketOwner::Console)?),
        ];
        let mut place = Vec::new();
        for (name, path) in named {
            let failed = |error| Failure::Read(path.clone(), error);
            let path = std::path::absolute(&path).map_err(failed)?;
            place.extend([name.to_owned(), path.to_string_lossy().into_owned()]);
        }
        Ok(place)
    }

    /// Folders of agent settings, relative to a project: the current folder, if none is named.
    pub(super) fn agent_folders(project: Option<&Path>) -> Result<Folders, Failure> {
        let project = project.unwrap_or(Path::new("."));
        let failed = |error| Failure::Read(project.to_owned(), error);
        let moved = |name: &str| {
            let path = std::env::var_os(name).filter(|path| !path.is_empty());
            path.and_then(|path| std::path::absolute(path).ok())
        };
        let agents = CodingAgent::ALL.iter();
        let variables = agents.filter_map(|agent| agent.adapter().folder_variable());
        // Normalized without the file system: a folder that does not exist yet has no canonical path.
        let project = std::path::absolute(project).map_err(failed)?;
        Ok(Folders {
            project: project.components().collect(),
            home: etcetera::home_dir().map_err(|_| Failure::NoHome)?,
            moved: variables
                .filter_map(|name| Some((name, moved(name)?)))
                .collect(),
        })
    }

    /// Path of the list of extensions.
    pub(super) fn extensions_file(&self) -> Result<PathBuf, Failure> {
        match &self.extensions {
            Some(named) => Ok(named.clone()),
            None => Ok(folders()?.in_config_dir("extensions.yaml")),
        }
    }

    /// Extensions that may be called: those of this program, and those of the operator's list.
    pub(super) fn extensions(&self) -> Result<Registry, Failure> {
        let own = self.own_extensions.clone();
        let Ok(file) = self.extensions_file() else {
            return Ok(own);
        };
        if self.extensions.is_none() && !file.exists() {
            return Ok(own);
        }
        own.with_list(&file).map_err(Failure::Extensions)
    }

    /// Changes that this program makes to manifests before they are validated.
    pub(super) fn configure(&self) -> ManifestTransform {
        self.own_extensions.configuration()
    }

    /// Delivery of notices by a console on the store in `folder`.
    pub(super) fn webhooks(
        whose: SocketOwner,
        wanted: NoticeDelivery,
        folder: &Path,
    ) -> Result<Webhooks, Failure> {
        match (whose, wanted) {
            (SocketOwner::Demo, _) => Ok(Webhooks::Off(NoticesOff::Demo)),
            (SocketOwner::Console, NoticeDelivery::Off) => Ok(Webhooks::Off(NoticesOff::Setting)),
            (SocketOwner::Console, NoticeDelivery::On) => {
                Ok(Webhooks::On(Self::webhook_secret(folder)?))
            }
        }
    }

    /// Source of the signing secret of notices.
    pub(super) fn webhook_secret(folder: &Path) -> Result<SecretSource, Failure> {
        let given = std::env::var_os(SECRET_VARIABLE).filter(|value| !value.is_empty());
        let Some(given) = given else {
            return Ok(SecretSource::Folder(folder.to_owned()));
        };
        let secret = given.to_string_lossy().parse();
        Ok(SecretSource::Fixed(secret.map_err(NoticeFailure::Given)?))
    }

    /// Default folder of Atlases in force.
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

/// `user@host`, as far as the machine reports them.
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
    fn the_demo_never_sends_notices() {
        let folder = Path::new("/nonexistent");
        for wanted in [NoticeDelivery::On, NoticeDelivery::Off] {
            let webhooks = Settings::webhooks(SocketOwner::Demo, wanted, folder).unwrap();
            assert!(
                matches!(webhooks, Webhooks::Off(NoticesOff::Demo)),
                "{webhooks:?}"
            );
        }
        let webhooks =
            Settings::webhooks(SocketOwner::Console, NoticeDelivery::Off, folder).unwrap();
        assert!(
            matches!(webhooks, Webhooks::Off(NoticesOff::Setting)),
            "{webhooks:?}"
        );
        let webhooks =
            Settings::webhooks(SocketOwner::Console, NoticeDelivery::On, folder).unwrap();
        assert!(matches!(webhooks, Webhooks::On(_)), "{webhooks:?}");
    }
}
