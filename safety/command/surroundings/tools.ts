import type { PlaceRule, ProgramSurroundings } from '../surroundings.ts'

/**
 * Settings that override the settings of every file, so that a change between check and run starts
 * nothing. No value of `diff.external` or an attribute driver means "none".
 */
const overrides: readonly [string, string][] = [
  ['core.fsmonitor', 'false'],
  ['core.hooksPath', '/dev/null'],
  ['core.pager', 'cat'],
  ['core.sshCommand', 'false'],
  ['core.askPass', 'false'],
  ['core.alternateRefsCommand', 'false'],
  ['gpg.program', 'false'],
  ['gpg.ssh.program', 'false'],
  ['gpg.x509.program', 'false'],
  ['log.showSignature', 'false'],
  ['status.submoduleSummary', 'false'],
  ['submodule.recurse', 'false'],
  ['diff.submodule', 'short'],
  // Prevents that a diff writes the index.
  ['diff.autoRefreshIndex', 'false'],
  ['protocol.allow', 'never'],
]

const switches: Record<string, string> = {
  GIT_CONFIG_COUNT: String(overrides.length),
  ...Object.fromEntries(
    overrides.flatMap(([key, value], n) => [
      [`GIT_CONFIG_KEY_${n}`, key],
      [`GIT_CONFIG_VALUE_${n}`, value],
    ]),
  ),
  GIT_ALLOW_PROTOCOL: 'none',
  GIT_ASKPASS: 'false',
  GIT_EDITOR: 'false',
  GIT_NO_LAZY_FETCH: '1',
  GIT_OPTIONAL_LOCKS: '0',
  GIT_PAGER: 'cat',
  GIT_TERMINAL_PROMPT: '0',
}

export const git: [string, ProgramSurroundings][] = [
  [
    'git',
    {
      manual: 'git-config(1), gitattributes(5), githooks(5), gitsubmodules(7), git 2.39',
      reach: 'prints',
      obeys:
        'settings of the repository, its work trees, its submodules and the user: programs for fsmonitor, diff, textconv, filters, gpg, ssh, pagers, hooks; includes; promisor remotes',
      switches,
      conditions: [{ kind: 'git_settings' }],
      // Asks people about this option, which enters submodules of the past that cannot be listed
      // beforehand.
      asksWith: ['--submodule'],
      except: ['version'],
    },
  ],
]

/** A setting as git reads it, with its origin. */
export type GitSetting = { scope: string; origin: string; key: string; value: string }

/**
 * Settings that only describe a repository, its branches and remotes, and the output of a read. Any
 * other could start a program, or lead to other files or a host: `core.fsmonitor`, `core.worktree`,
 * `diff.<driver>`, `filter.<driver>`, `include`, `alias`, `gpg`, `credential`,
 * `remote.<name>.promisor`, `extensions.partialClone`.
 */
const describing: readonly string[] = [
  'core\\.(?:repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|autocrlf|safecrlf|eol|symlinks)',
  'core\\.(?:sharedrepository|abbrev|quotepath|compression|whitespace|untrackedcache|preloadindex|checkstat|trustctime)',
  'core\\.(?:bigfilethreshold|sparsecheckout|sparsecheckoutcone|protecthfs|protectntfs|longpaths|commitgraph|multipackindex)',
  'user\\.(?:name|email|signingkey)',
  'remote\\..+\\.(?:url|pushurl|fetch|push|tagopt|prune|mirror)',
  'branch\\..+\\.(?:remote|merge|rebase|description|pushremote)',
  'branch\\.(?:sort|autosetupmerge|autosetuprebase)',
  'remote\\.pushdefault',
  'extensions\\.(?:objectformat|worktreeconfig|refstorage)',
  'init\\.defaultbranch',
  '(?:pull|push|fetch|gc|pack|index|rerere|rebase|advice|color|column|i18n|maintenance)\\.[^.]+',
  'blame\\.(?:showroot|showemail|date|coloring)',
  'color\\..+\\..+',
  'merge\\.(?:ff|conflictstyle|renames|stat)',
  'diff\\.(?:renames|algorithm|mnemonicprefix|noprefix|context|interhunkcontext|colormoved|renamelimit|indentheuristic|suppressblankempty)',
  'log\\.(?:date|abbrevcommit|decorate|follow|mailmap)',
  'status\\.(?:short|branch|showstash|showuntrackedfiles|relativepaths|aheadbehind|renames)',
  'commit\\.(?:gpgsign|verbose)',
  'tag\\.(?:gpgsign|sort)',
  'receive\\.deny[a-z]+',
  'safe\\.directory',
  'submodule\\.(?:active|.+\\.(?:url|active|ignore|branch))',
]
const harmless = new RegExp(`^(?:${describing.join('|')})$`, 'is')

/** Matches values that name no program, however git reads them. */
const off = /^(?:false|no|off|0|)$/i

/**
 * Finds the first setting that a read must not obey; null if all only describe. Files that only
 * root writes are trusted (`isTrusted`).
 */
export function oddGitSetting(
  settings: readonly GitSetting[],
  isTrusted: (file: string) => boolean,
  isOwnWorkTree: (path: string) => boolean,
): GitSetting | null {
  const odd = settings.find(({ scope, origin, key, value }) => {
    if (scope === 'command' || harmless.test(key)) return false
    if (/^core\.fsmonitor$/i.test(key) && off.test(value)) return false
    if (/^core\.worktree$/i.test(key) && isOwnWorkTree(value)) return false
    return !(origin.startsWith('file:') && isTrusted(origin.slice('file:'.length)))
  })
  return odd ?? null
}

/** Reads `git config --list -z --show-scope --show-origin`; null for any other text. */
export function gitSettingsIn(printed: string): GitSetting[] | null {
  const parts = printed.split('\0')
  if (parts.pop() !== '' || parts.length % 3 !== 0) return null
  const settings: GitSetting[] = []
  for (let at = 0; at < parts.length; at += 3) {
    const [scope, origin, pair] = parts.slice(at, at + 3) as [string, string, string]
    const end = pair.indexOf('\n')
    // Gives a key without a value the value true.
    settings.push({
      scope,
      origin,
      key: end < 0 ? pair : pair.slice(0, end),
      value: end < 0 ? 'true' : pair.slice(end + 1),
    })
  }
  return settings
}

const rootOnly = (...files: string[]): PlaceRule[] => [{ kind: 'root_only', files }]
const here = (...files: string[]): PlaceRule[] => [{ kind: 'root_only', files, up: true }]
const each = (names: string, row: ProgramSurroundings): [string, ProgramSurroundings][] =>
  names.split(' ').map((name) => [name, row])

const rpmMacros = rootOnly('~/.rpmmacros', '~/.rpmrc', '~/.config/rpm')

/** Package tools, tool chains, and servers that check their own configuration. */
export const tools: [string, ProgramSurroundings][] = [
  ...each('rpm', {
    manual: 'rpm(8), rpmrc(5), RPM 4.18',
    reach: 'prints',
    obeys: '~/.rpmmacros, ~/.rpmrc: macros that run programs when they are expanded',
    conditions: rpmMacros,
  }),
  ...each('dnf yum zypper needs-restarting', {
    manual: 'dnf(8), DNF 4.14; zypper(8), 1.14',
    reach: 'prints',
    obeys: "what rpm obeys; ~/.zypper.conf; plug-ins of Python in the user's home",
    conditions: [...rpmMacros, ...rootOnly('~/.zypper.conf')],
  }),
  ...each('npm', {
    manual: 'npm(1), npmrc(5), npm 10',
    reach: 'prints',
    obeys: '.npmrc here and above, ~/.npmrc: options of node, other programs, other registries',
    switches: { NO_UPDATE_NOTIFIER: '1', npm_config_update_notifier: 'false', npm_config_userconfig: '/dev/null' },
    conditions: here('.npmrc'),
  }),
  ...each('gem', {
    manual: 'gem, RubyGems 3.3: gemrc, plugins',
    reach: 'prints',
    obeys: "~/.gemrc; plug-ins of gems in the user's home",
    conditions: rootOnly('~/.gemrc', '~/.config/gem', '~/.gem', '~/.local/share/gem'),
  }),
  ...each('pip pip3', {
    manual: 'pip(1), pip 23: configuration; site(3): PYTHONNOUSERSITE',
    reach: 'prints',
    obeys: 'pip.conf of the user; modules in their home, which Python loads at its start',
    switches: { PIP_CONFIG_FILE: '/dev/null', PIP_DISABLE_PIP_VERSION_CHECK: '1' },
  }),
  ...each('python python2 python3', {
    manual: 'python(1): PYTHONNOUSERSITE, PYTHONSAFEPATH',
    reach: 'prints',
    obeys: "modules in the user's home, which Python loads at its start",
    switches: { PYTHONNOUSERSITE: '1', PYTHONSAFEPATH: '1' },
  }),
  ...each('cargo rustc', {
    manual: 'rustup: overrides; cargo: configuration',
    reach: 'prints',
    obeys: 'rust-toolchain here and above: another compiler by its path; .cargo/config',
    switches: { RUSTUP_AUTO_INSTALL: '0' },
    conditions: [
      ...here('rust-toolchain', 'rust-toolchain.toml', '.cargo/config', '.cargo/config.toml'),
      ...rootOnly('~/.rustup/settings.toml', '~/.cargo/config', '~/.cargo/config.toml'),
    ],
  }),
  ...each('go', {
    manual: 'go, 1.21: go help environment, GOTOOLCHAIN, GOENV',
    reach: 'prints',
    obeys: "go.mod and go.work here and above: another tool chain, which is fetched and run; the user's go/env",
    switches: { GOTOOLCHAIN: 'local', GOENV: 'off', GOFLAGS: '', GOWORK: 'off', GOTELEMETRY: 'off' },
  }),
  ...each('ansible ansible-playbook ansible-galaxy', {
    manual: 'ansible(1): configuration file search',
    reach: 'prints',
    obeys: 'ansible.cfg of the directory, ~/.ansible.cfg: plug-ins',
    conditions: rootOnly('ansible.cfg', '~/.ansible.cfg', '~/.ansible/plugins', '~/.ansible/collections'),
  }),
  ...each('terraform', {
    manual: 'terraform(1), 1.7: CLI configuration, backends',
    reach: 'prints',
    obeys:
      '~/.terraformrc: credential helpers, plug-ins; .terraform and *.tf of the directory: another place for the state',
    switches: { TF_CLI_CONFIG_FILE: '/dev/null', CHECKPOINT_DISABLE: '1', TF_IN_AUTOMATION: '1' },
    conditions: rootOnly('.terraform', '~/.terraform.d/plugins'),
  }),
  ...each('supervisorctl', {
    manual: 'supervisorctl, Supervisor 4.2: configuration file search',
    reach: 'service',
    obeys: 'supervisord.conf of the directory: another server, code of plug-ins',
    conditions: rootOnly('supervisord.conf', 'etc/supervisord.conf'),
  }),
  ...each('pstack', {
    manual: 'pstack(1), gdb(1): .gdbinit, auto-load',
    reach: 'prints',
    obeys: '.gdbinit of the directory and the home: commands that run programs',
    conditions: rootOnly('.gdbinit', '~/.gdbinit', '~/.config/gdb'),
  }),
  ...each('monit', {
    manual: 'monit(1), 5.33: control file',
    reach: 'network',
    obeys: '~/.monitrc: another server',
    conditions: rootOnly('~/.monitrc', 'monitrc'),
  }),
  ...each('haproxy', {
    manual: 'haproxy(1), HAProxy 2.6: -f, lua-load',
    reach: 'prints',
    obeys: '-f: code in Lua is loaded when the file is checked',
    conditions: rootOnly('/etc/haproxy'),
    obeysFilesOf: ['-f'],
  }),
  ...each('nginx', {
    manual: 'nginx(8), nginx 1.22: load_module',
    reach: 'prints',
    obeys: 'its configuration: modules are loaded when it is checked',
    conditions: rootOnly('/etc/nginx/nginx.conf', '/etc/nginx/modules-enabled'),
  }),
  ...each('apachectl apache2ctl httpd', {
    manual: 'apachectl(8), Apache 2.4: envvars, LoadModule',
    reach: 'prints',
    obeys: 'its configuration: modules and a shell script are loaded when it is checked',
    conditions: rootOnly(
      '/etc/apache2/envvars',
      '/etc/apache2/apache2.conf',
      '/etc/httpd/conf/httpd.conf',
      '/etc/sysconfig/httpd',
    ),
  }),
  ...each('named-checkconf', {
    manual: 'named-checkconf(1), BIND 9.18: plugin',
    reach: 'prints',
    obeys: 'its configuration: plug-ins are loaded when it is checked',
    conditions: rootOnly('/etc/bind/named.conf', '/etc/named.conf'),
    obeysFilesOf: ['operand'],
  }),
]
