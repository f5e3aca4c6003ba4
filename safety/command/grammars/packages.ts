import type { Grammar, Grammars } from '../grammar.ts'
import { each, spell } from './spell.ts'

const text = { rest: 'text' } as const
const one = (manual: string, flag: string, values = '', operands: Grammar['operands'] = text): Grammar => ({
  manual,
  options: spell({ ...(flag ? { flag } : {}), ...(values ? { text: values } : {}) }),
  ...(operands ? { operands } : {}),
})

/** What is installed. What would ask a mirror, write a cache or take a setting (`apt -o`, `--config`) is left out. */
export const packages: Grammars = {
  ...each('apt apt-cache', {
    // -o may run a program, -c reads settings, update and the rest act.
    manual: 'apt(8), apt-cache(8), apt 2.6',
    options: spell({
      flag: '-a -f -i -n -q -v --all-versions --full --installed --manual-installed --names-only --quiet --upgradable --upgradeable --version',
    }),
    commands: each(
      'depends list madison pkgnames policy rdepends search show showpkg showsrc stats',
      one('apt(8)', ''),
    ),
  }),
  'apt-mark': {
    manual: 'apt-mark(8), apt 2.6',
    commands: each('showauto showhold showmanual', one('apt-mark(8)', '')),
  },
  ...each('dnf yum', {
    // -c and --setopt take settings, --enablerepo and --installroot go elsewhere; -C keeps off the network, so it must be there.
    manual: 'dnf(8), DNF 4.14; yum(8)',
    options: spell({ flag: '-C --cacheonly -q --quiet -v --verbose --version' }),
    requires: ['-C', '--cacheonly', '--version'],
    bare: true,
    commands: {
      history: { manual: 'dnf(8)', bare: true, commands: each('info list', one('dnf(8)', '')) },
      ...each(
        'info list ls repolist repoquery search',
        one('dnf(8)', '--all --available --installed --updates --obsoletes --enabled --disabled'),
      ),
    },
  }),
  dpkg: {
    // Actions that look; --admindir and --root go elsewhere, -i, -r, -P, --configure and --set-selections act.
    manual: 'dpkg(1), dpkg 1.21',
    options: spell({
      flag: '-C -l -L -p -s -S -V --audit --get-selections --list --listfiles --no-pager --print-architecture --print-foreign-architectures --search --status --verify --version --help',
    }),
    operands: { rest: 'text' },
    requires: [
      '-C',
      '-l',
      '-L',
      '-p',
      '-s',
      '-S',
      '-V',
      '--audit',
      '--get-selections',
      '--list',
      '--listfiles',
      '--print-architecture',
      '--print-foreign-architectures',
      '--search',
      '--status',
      '--verify',
      '--version',
      '--help',
    ],
  },
  'dpkg-query': {
    manual: 'dpkg-query(1), dpkg 1.21',
    options: spell({
      flag: '-l -L -p -s -S -W --list --listfiles --no-pager --search --show --status --version',
      text: '-f --showformat',
    }),
    operands: { rest: 'text' },
  },
  flatpak: {
    manual: 'flatpak(1), 1.14',
    commands: {
      list: one('flatpak-list(1)', '--app --runtime --system --user -d --show-details', '--columns', undefined),
      info: one('flatpak-info(1)', '', '', { first: ['name'], min: 1 }),
    },
  },
  gem: {
    manual: 'gem, RubyGems 3.3',
    options: spell({ flag: '-v --version' }),
    bare: true,
    commands: {
      list: one('gem list', '-a --all -l --local --no-details --versions'),
      env: one('gem environment', '', '', { first: ['name'] }),
    },
  },
  npm: {
    // A project's configuration may choose a script shell, but these verbs run none.
    manual: 'npm(1), npm 10',
    options: spell({ flag: '-v --version -g --global' }),
    bare: true,
    commands: {
      ...each('la list ll ls', one('npm-ls(1)', '--all --json --long --omit=dev', '--depth')),
      ...each('root prefix', one('npm-root(1)', '', '', undefined)),
    },
  },
  ...each('pip pip3', {
    // freeze and list look; check too; --index-url and --outdated go to the network.
    manual: 'pip(1), pip 23',
    options: spell({ flag: '-V --version --disable-pip-version-check' }),
    bare: true,
    commands: {
      ...each('check', one('pip check', '')),
      ...each('freeze list', one('pip list', '-l --all --local --user --not-required -v', '--format', undefined)),
      show: one('pip show', '-f --files -v', '', { rest: 'name', min: 1 }),
    },
  }),
  rpm: {
    // Queries alone: verification runs the package's own script; -e, -i, -U, -F, --import, --define, --eval, --pipe, --load and --root act or run.
    manual: 'rpm(8), RPM 4.18',
    options: spell({
      flag: `-a -c -d -f -i -l -L -p -q -R -s -v --all --changelog --changes --conflicts --configfiles --docfiles --enhances --file
        --filesbypkg --info --last --list --obsoletes --provides --query --recommends --requires --scripts --state --suggests
        --supplements --triggers --version --whatprovides --whatrequires --nodigest --nofiles --nosignature`,
      text: '--qf --queryformat',
    }),
    operands: { rest: 'file' },
    requires: ['-q', '--query', '--version'],
    // A package may be fetched from an address, and a format may hold a macro or a Lua program.
    refuses: ['://', '%\\(', '%\\{lua'],
  },
  snap: {
    manual: 'snap(8), snapd 2.57',
    commands: { ...each('changes connections list services tasks version warnings', one('snap(8)', '--all')) },
  },
  zypper: {
    manual: 'zypper(8), 1.14',
    options: spell({ flag: '--no-refresh -n --non-interactive -q --quiet' }),
    requires: ['--no-refresh'],
    commands: each('if info lr repos se search', one('zypper(8)', '-d -i -s -u --details --installed-only')),
  },
}
