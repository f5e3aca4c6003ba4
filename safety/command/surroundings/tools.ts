import type { Rule, Surroundings } from '../surroundings.ts'

const rootOnly = (...files: string[]): Rule[] => [{ kind: 'root_only', files }]
const here = (...files: string[]): Rule[] => [{ kind: 'root_only', files, up: true }]
const each = (names: string, row: Surroundings): [string, Surroundings][] => names.split(' ').map((name) => [name, row])

const rpmMacros = rootOnly('~/.rpmmacros', '~/.rpmrc', '~/.config/rpm')

/** Package tools, tool chains, servers that check their own configuration. */
export const tools: [string, Surroundings][] = [
  ...each('rpm', {
    manual: 'rpm(8), rpmrc(5), RPM 4.18',
    reach: 'prints',
    obeys: '~/.rpmmacros, ~/.rpmrc: macros that run programs when they are expanded',
    conditions: rpmMacros,
  }),
  ...each('dnf yum zypper', {
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
