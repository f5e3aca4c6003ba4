import { type Grammar, type Grammars, gnu, sameGrammar, spellOptions } from '../grammar.ts'

const text = { rest: 'text' } as const
const one = (manual: string, flag: string, values = '', operands: Grammar['operands'] = text): Grammar => ({
  manual,
  options: spellOptions({ ...(flag ? { flag } : {}), ...(values ? { text: values } : {}) }),
  ...(operands ? { operands } : {}),
})

/** Matches text, an escape, or a package's tag in a form that only prints: rpm-queryformat(7). */
const tagFormat =
  '[^%\\\\]|\\\\.|%%|%-?\\d{0,3}\\{=?\\w+(?::(?:armor|arraysize|base64|date|day|depflags|deptype|fflags|fstate|fstatus|hex|octal|perms|pgpsig|shescape|string|vflags))?\\}'

/**
 * Programs about installed packages. Excluded: contact with a mirror, writing a cache, settings on
 * the command line (`apt -o`, `--config`).
 */
export const packages: Grammars = {
  ...sameGrammar('apt apt-cache', {
    // Excluded: -o may run a program, -c reads settings; update and other verbs change something.
    manual: 'apt(8), apt-cache(8), apt 2.6',
    options: spellOptions({
      flag: '-a -f -i -n -q -v --all-versions --full --installed --manual-installed --names-only --quiet --upgradable --upgradeable --version',
    }),
    commands: sameGrammar(
      'depends list madison pkgnames policy rdepends search show showpkg showsrc stats',
      one('apt(8)', ''),
    ),
  }),
  'apt-mark': {
    manual: 'apt-mark(8), apt 2.6',
    commands: sameGrammar('showauto showhold showmanual', one('apt-mark(8)', '')),
  },
  ...sameGrammar('dnf yum', {
    // Requires -C, which prevents the use of the network. Excluded: -c and --setopt take settings,
    // --enablerepo and --installroot use another repository or tree.
    manual: 'dnf(8), DNF 4.14; yum(8)',
    options: spellOptions({ flag: '-C --cacheonly -q --quiet -v --verbose --version' }),
    requires: ['-C', '--cacheonly', '--version'],
    bare: true,
    commands: {
      history: { bare: true, commands: sameGrammar('info list', one('dnf(8)', '')) },
      ...sameGrammar(
        'info list ls repolist repoquery search',
        one('dnf(8)', '--all --available --installed --updates --obsoletes --enabled --disabled'),
      ),
    },
  }),
  dpkg: {
    // Allows only actions that read. Excluded: --admindir and --root use another tree; -i, -r, -P,
    // --configure and --set-selections change packages.
    manual: 'dpkg(1), dpkg 1.21',
    options: spellOptions({
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
    options: spellOptions({
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
    options: spellOptions({ flag: '-v --version' }),
    bare: true,
    commands: {
      list: one('gem list', '-a --all -l --local --no-details --versions'),
      env: one('gem environment', '', '', { first: ['name'] }),
    },
  },
  npm: {
    // Allows these verbs, because they run no script, although a project's configuration may choose
    // a script shell.
    manual: 'npm(1), npm 10',
    options: spellOptions({ flag: '-v --version -g --global' }),
    bare: true,
    commands: {
      ...sameGrammar('la list ll ls', one('npm-ls(1)', '--all --json --long --omit=dev', '--depth')),
      ...sameGrammar('root prefix', one('npm-root(1)', '', '', undefined)),
    },
  },
  ...sameGrammar('pip pip3', {
    // Allows freeze, list and check, which read. Excluded: --index-url and --outdated, which use
    // the network.
    manual: 'pip(1), pip 23',
    options: spellOptions({ flag: '-V --version --disable-pip-version-check' }),
    bare: true,
    commands: {
      ...sameGrammar('check', one('pip check', '')),
      ...sameGrammar(
        'freeze list',
        one('pip list', '-l --all --local --user --not-required -v', '--format', undefined),
      ),
      show: one('pip show', '-f --files -v', '', { rest: 'name', min: 1 }),
    },
  }),
  rpm: {
    // Allows only queries. Excluded: verification runs the package's script; -e, -i without -q, -U,
    // -F, --import, --define, --eval, --pipe, --load and --root change packages or run programs.
    manual: 'rpm(8), RPM 4.18',
    options: spellOptions({
      flag: `-a -c -d -f -i -l -L -p -q -R -s -v --all --changelog --changes --conflicts --configfiles --docfiles --enhances --file
        --filesbypkg --info --last --list --obsoletes --provides --query --recommends --requires --scripts --state --suggests
        --supplements --triggers --version --whatprovides --whatrequires --nodigest --nofiles --nosignature`,
      text: '--qf --queryformat',
    }),
    operands: { rest: 'file' },
    requires: ['-q', '--query', '--version'],
    // Refuses an address, which may fetch a package. Formats may have tags only in listed forms,
    // because `expand` runs the package's macros.
    refuses: ['^//', '://', `^(?=.*%)(?!(?:${tagFormat})*$)`],
  },
  snap: {
    manual: 'snap(8), snapd 2.57',
    commands: { ...sameGrammar('changes connections list services tasks version warnings', one('snap(8)', '--all')) },
  },
  zypper: {
    manual: 'zypper(8), 1.14',
    options: spellOptions({ flag: '--no-refresh -n --non-interactive -q --quiet' }),
    requires: ['--no-refresh'],
    commands: sameGrammar('if info lr repos se search', one('zypper(8)', '-d -i -s -u --details --installed-only')),
  },
}

/** Programs for archives and compressed files: list, test and print. */
export const archives: Grammars = {
  ...sameGrammar('bzip2 bunzip2 unxz unzstd xz zstd', {
    // Allows -d only with -c in the same word: the last mode wins, so -t -d would replace the file.
    manual: 'bzip2(1), xz(1), zstd(1)',
    options: spellOptions({ flag: '-c -k -l -q -t -v -cd -dc --list --stdout --test --verbose' }),
    operands: { rest: 'file', min: 1 },
    requires: ['-c', '-cd', '-dc', '--stdout', '-l', '--list', '-t', '--test'],
    measures: { unless: ['-c', '-cd', '-dc', '--stdout'] },
  }),
  ...sameGrammar('gzip gunzip', {
    // Requires one of the options in `requires`, because otherwise the file is replaced.
    manual: 'gzip(1), gzip 1.12',
    options: spellOptions({ flag: '-c -d -k -l -q -t -v --decompress --list --stdout --test --verbose' }),
    operands: { rest: 'file', min: 1 },
    requires: ['-c', '--stdout', '-l', '--list', '-t', '--test'],
    measures: { unless: ['-c', '--stdout'] },
  }),
  tar: {
    // Refuses an archive `host:file`, which is fetched with rsh. Excluded: -I, -F, --to-command and
    // --checkpoint-action, which run programs.
    manual: 'tar(1), GNU tar 1.34',
    options: spellOptions({
      flag: `-a -j -J -t -v -z --bzip2 --full-time --gzip --list --numeric-owner --utc --verbose --wildcards --xz --zstd
        ${gnu}`,
      file: '-f --file',
      text: '--exclude',
    }),
    bsd: 'tvfzjJa',
    bsdValues: { f: 'file' },
    operands: { rest: 'text' },
    requires: ['-t', '--list'],
    measures: {},
    // Refuses a first word of only letters, which is read as options: `tar If program archive -t`.
    refuses: [':', '^[a-z0-9]+$'],
  },
  unzip: {
    // Excluded: -p and -c, which print the contents.
    manual: 'unzip(1), Info-ZIP 6.0',
    options: spellOptions({ flag: '-C -l -q -t -v -z' }),
    operands: { first: ['file'], rest: 'text', min: 1 },
    requires: ['-l', '-t', '-v', '-z'],
    measures: {},
  },
  ...sameGrammar('zcat bzcat xzcat zstdcat lz4cat gzcat', {
    manual: 'zcat(1), bzcat(1), xzcat(1), zstdcat(1)',
    options: spellOptions({ flag: '-f -q -v --help --version' }),
    operands: { rest: 'file' },
  }),
  zipinfo: {
    manual: 'zipinfo(1), Info-ZIP 3.0',
    options: spellOptions({ flag: '-1 -2 -C -h -l -m -s -t -T -v -z' }),
    measures: {},
    operands: { first: ['file'], rest: 'text', min: 1 },
  },
}

/** Words of a packet filter, pcap-filter(7). Any other name would be looked up in the DNS. */
const filter =
  `host|net|port|portrange|src|dst|and|or|not|ether|ip|ip6|arp|rarp|tcp|udp|icmp|icmp6|vlan|proto|broadcast|multicast|
inbound|outbound|less|greater|len|mask|tcpflags|tcp-syn|tcp-ack|tcp-fin|tcp-rst|tcp-push|syn|ack`.replaceAll('\n', '')

/**
 * Programs that show for a limited time what the machine does now: threads, packets, input and
 * output.
 */
export const snapshots: Grammars = {
  iotop: {
    manual: 'iotop(8), iotop 0.6; iotop-c 1.23',
    options: spellOptions({
      flag: '-a -b -k -o -P -q -qq -qqq -t --accumulated --batch --kilobytes --only --processes --quiet --time --version',
      number: '-d -p --delay --pid',
      count: '-n --iter',
      name: '-u --user',
    }),
    endless: { when: 'always', unless: ['-n', '--iter'], instead: { drop: [], add: ['-b', '-n', '1'] } },
  },
  jcmd: {
    // Excluded: GC.run, heap dumps and flag changes, which change something; VM.system_properties,
    // VM.command_line and VM.info, which show passwords.
    manual: 'jcmd(1), OpenJDK 17',
    options: spellOptions({ flag: '-l -h' }),
    operands: { first: ['text', 'name'], rest: 'name' },
    refuses: ['^(?!(\\d+|[a-z_$][\\w$]*(\\.[a-z_$][\\w$]*)*|-l)$)', '^(?:baseline|shutdown)$'],
    // Refuses other commands, because those of OpenJ9 write dumps.
    second:
      '^(?:help|VM\\.(?:version|uptime|flags|classloader_stats|native_memory)|GC\\.(?:heap_info|finalizer_info)|Thread\\.print|Compiler\\.(?:queue|codecache|codelist)|PerfCounter\\.print)$',
  },
  jps: { manual: 'jps(1), OpenJDK 17', style: 'word', options: spellOptions({ flag: '-l -q' }) },
  jinfo: {
    // Requires an option, because without one it prints properties, which hold passwords. A sign
    // before a flag's name sets the flag.
    manual: 'jinfo(1), OpenJDK 17',
    style: 'word',
    options: spellOptions({ flag: '-flags', name: '-flag' }),
    operands: { first: ['number'], min: 1 },
    requires: ['-flags', '-flag'],
    refuses: ['[=+]', '^-'],
  },
  // Excluded: jmap, which walks through the heap and stops the program meanwhile.
  jstack: {
    manual: 'jstack(1), OpenJDK 17',
    style: 'word',
    options: spellOptions({ flag: '-l -e' }),
    operands: { first: ['number'], min: 1 },
  },
  jstat: {
    manual: 'jstat(1), OpenJDK 17',
    style: 'word',
    options: spellOptions({
      flag: '-class -compiler -gc -gccapacity -gccause -gcmetacapacity -gcnew -gcnewcapacity -gcold -gcoldcapacity -gcutil -printcompilation -t',
      number: '-h',
    }),
    // Operands are process, interval and count; without the count the program never ends.
    operands: { first: ['number', 'text', 'count'], min: 1 },
    refuses: ['[@/]'],
    endless: { when: 'period', instead: { drop: [], add: ['2'] } },
    requires:
      '-class -compiler -gc -gccapacity -gccause -gcmetacapacity -gcnew -gcnewcapacity -gcold -gcoldcapacity -gcutil -printcompilation'.split(
        ' ',
      ),
  },
  ...sameGrammar('pstack eu-stack', {
    manual: 'pstack(1), eu-stack(1)',
    options: spellOptions({ number: '-p' }),
    operands: { first: ['number'] },
  }),
  sleep: {
    manual: 'sleep(1), coreutils 9.1',
    operands: { first: ['number'], min: 1 },
    refuses: ['^\\d{3,}', '^[6-9]\\d', '[mhd]$', 'inf'],
  },
  tcpdump: {
    // Excluded: -w and -z write and run programs, -r and -F read files, -A, -X and -x print
    // contents.
    manual: 'tcpdump(8), tcpdump 4.99; pcap-filter(7)',
    options: spellOptions({
      flag: '-e -l -n -nn -p -q -t -tt -ttt -tttt -v -vv -D --list-interfaces -K -L -N -O -S -# --number --version',
      number: '-c -s -y',
      name: '-i --interface',
      text: '-Q',
    }),
    operands: { rest: 'text' },
    refusesOperands: [
      `(^|[\\s(!=<>&|\\[])(?!(${filter})(?![\\w.-]))[a-z_][\\w.-]*`,
      '(^|[\\s(!=<>&|])[0-9][0-9.-]*[g-z_]',
      '[^\\x00-\\x7f]',
    ],
    endless: {
      when: 'always',
      unless: ['-c', '-D', '--list-interfaces', '--version'],
      instead: { drop: [], add: ['-c', '50'] },
    },
  },
}
