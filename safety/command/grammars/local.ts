import { type Grammar, type Grammars, gnu, paths, sameGrammar, spellOptions } from '../grammar.ts'

const plain = (manual: string, options: Grammar['options'] = {}): Grammar => ({
  manual,
  options,
  operands: { rest: 'name' },
})
const verbs = (manual: string, text: string, options: Grammar['options'] = {}): Grammar => ({
  manual,
  options,
  commands: paths(text, plain(manual)),
})
/** Grammar that requires one of these options and allows no others. */
const oneOf = (manual: string, flag: string, more = '', operands?: Grammar['operands']): Grammar => ({
  manual,
  options: spellOptions({ flag: `${flag} ${more}`.trim() }),
  requires: flag.split(' '),
  ...(operands ? { operands } : {}),
})
const names = { rest: 'name' } as const

/** Packages, supervisors, graphics cards, boot, Kerberos tickets: only the forms that read. */
export const local: Grammars = {
  'amd-smi': verbs(
    'amd-smi, ROCm 6',
    'list|static|topology|version',
    spellOptions({ flag: '--json --csv', number: '-g --gpu' }),
  ),
  apk: verbs('apk(8), apk-tools 2.14', 'version|policy', {}),
  bootc: verbs('bootc(8)', 'status', spellOptions({ flag: '--json' })),
  'cloud-init': verbs(
    'cloud-init 23.4',
    'status, analyze blame|show|boot',
    spellOptions({ flag: '--long --wait=false -v --version' }),
  ),
  dcgmi: {
    manual: 'dcgmi, DCGM 3.3',
    commands: {
      discovery: oneOf('dcgmi', '-l'),
      nvlink: oneOf('dcgmi', '-s -e'),
      topo: { options: spellOptions({ number: '-g --gpuid' }) },
      // Requires -c, without which the command sets what is watched.
      health: {
        ...oneOf('dcgmi health', '-c --check', '-j'),
        options: spellOptions({ flag: '-c --check -j', number: '-g' }),
      },
    },
  },
  debsums: {
    manual: 'debsums(1), 3.0',
    options: spellOptions({ flag: '-a -c -e -l -s --all --changed --silent' }),
    operands: names,
  },
  dkms: verbs('dkms(8)', 'status'),
  efibootmgr: { manual: 'efibootmgr(8), 17', options: spellOptions({ flag: '-v -V --verbose --version' }) },
  fwupdmgr: verbs('fwupdmgr(1), 1.8', 'get-devices|get-history|get-topology', spellOptions({ flag: '--json' })),
  grubby: {
    manual: 'grubby(8)',
    options: spellOptions({ flag: '--default-kernel --default-index --default-title', text: '--info' }),
    requires: ['--default-kernel', '--default-index', '--default-title', '--info'],
  },
  hwclock: oneOf('hwclock(8), util-linux 2.38', '-r --show --get', '-u -l --utc --localtime -v --verbose'),
  klist: { manual: 'klist(1), MIT Kerberos 1.20', options: spellOptions({ flag: '-A -a -e -f -l -n -s -V' }) },
  ldconfig: oneOf('ldconfig(8), glibc 2.36', '-p --print-cache'),
  linstor: verbs(
    'linstor, 1.20',
    'node|resource|volume|storage-pool|resource-definition|resource-group|error-reports list',
    spellOptions({ flag: '-p --pastable' }),
  ),
  ...sameGrammar('megacli MegaCli MegaCli64', {
    // Refuses every other word, because each sets or starts something.
    manual: 'MegaCLI 8.07 reference',
    style: 'plain',
    operands: { rest: 'text', min: 2 },
    refuses: [
      '^(?!-?(LDInfo|LDPDInfo|PDList|PDInfo|FwTermLog|Dsply|AdpEventLog|GetEventLogInfo|AdpAllInfo|AdpBbuCmd|GetBbuStatus|CfgDsply|EncInfo|AdpCount|ShowSummary|Lall|L\\d+|aALL|a\\d+|NoLog|PhysDrv|\\[\\d+:\\d+\\])$)',
    ],
  }),
  mokutil: oneOf('mokutil(1), 0.6', '--sb-state'),
  nm: {
    manual: 'nm(1), binutils 2.40',
    options: spellOptions({ flag: '-a -C -D -g -n -S -u' }),
    operands: { rest: 'file', min: 1 },
    measures: {},
  },
  pacman: {
    // Excluded: -S, -R, -U and -D change packages. -Qk runs no program.
    manual: 'pacman(8), 6.0',
    style: 'word',
    options: spellOptions({ flag: '-Q -Qi -Ql -Qe -Qu -Qm -Qo -Qs -Qk -Qq -Qdt' }),
    operands: { rest: 'text' },
    requires: '-Q -Qi -Ql -Qe -Qu -Qm -Qo -Qs -Qk -Qq -Qdt'.split(' '),
  },
  pdnsutil: verbs('pdnsutil(1), 4.7', 'list-all-zones|list-zone|check-zone|check-all-zones'),
  ...sameGrammar('rc-service service', {
    manual: 'rc-service(8), OpenRC 0.45; service(8)',
    // Reads a name and `status` only, because an init script gets any word after its name.
    operands: { first: ['name', 'name'], min: 2 },
    second: '^status$',
  }),
  'rc-status': {
    manual: 'rc-status(8), OpenRC 0.45',
    options: spellOptions({ flag: '-a -c -l -m -s -u --all --crashed --list --servicelist' }),
    operands: names,
  },
  readelf: {
    manual: 'readelf(1), binutils 2.40',
    options: spellOptions({ flag: '-a -d -e -h -l -n -S -s -V -W' }),
    operands: { rest: 'file', min: 1 },
    measures: {},
  },
  'rocm-smi': {
    manual: 'rocm-smi, ROCm 6',
    style: 'word',
    options: spellOptions({
      flag: '-a -t -u -P -i --showtemp --showuse --showpower --showid --showallinfo --showmemuse --json --showclocks --showfan --showerrors',
      text: '--showmeminfo',
    }),
  },
  rocminfo: { manual: 'rocminfo, ROCm 6' },
  smem: { manual: 'smem(8), 1.5', options: spellOptions({ flag: '-H -k -m -n -p -r -t -u -w', text: '-c -s -P -U' }) },
  swanctl: oneOf(
    'swanctl(8), strongSwan 5.9',
    '--list-sas --list-conns --list-pols --stats --version -l -L -P -S',
    '--raw --pretty -r -p',
  ),
  'update-alternatives': {
    manual: 'update-alternatives(1), dpkg 1.21',
    style: 'word',
    options: spellOptions({ name: '--display --list --query', flag: '--get-selections' }),
    requires: ['--display', '--list', '--query', '--get-selections'],
  },
  'virt-top': {
    manual: 'virt-top(1), 1.1',
    options: spellOptions({ flag: '-b --batch -1 -2 -3', number: '-n -d' }),
    endless: { when: 'always', unless: ['-n'], instead: { drop: [], add: ['-b', '-n', '1'] } },
  },
  // Excluded: the long form of list, which prints configurations.
  xl: verbs('xl(1), Xen 4.17', 'list|info|vcpu-list|uptime|domid|domname|cpupool-list'),
  'needs-restarting': {
    manual: 'needs-restarting(1), dnf-plugins-core 4',
    options: spellOptions({ flag: '-r -s --reboothint --services' }),
  },
}

const once = { drop: [], add: ['2'] }

/** Processes, load and memory. */
export const processes: Grammars = {
  free: {
    manual: 'free(1), procps-ng 4.0',
    options: spellOptions({
      flag: `-b -g -h -k -l -L -m -t -v -V -w --bytes --kibi --mebi --gibi --tebi --kilo --mega --giga --human --line --lohi --si
        --total --wide --committed ${gnu}`,
      number: '-c -s --count --seconds',
    }),
    endless: { when: ['-s', '--seconds'], unless: ['-c', '--count'], instead: { drop: [], add: ['-c', '2'] } },
  },
  fuser: {
    // Excluded: -k, which kills.
    manual: 'fuser(1), psmisc 23.6',
    options: spellOptions({
      flag: '-4 -6 -a -c -f -I -l -m -M -s -u -v -V --all --mount --user --verbose',
      name: '-n --namespace',
    }),
    operands: { rest: 'file', min: 1 },
  },
  iostat: {
    manual: 'iostat(1), sysstat 12.6',
    options: spellOptions({
      flag: '-c -d -h -k -m -N -s -t -V -x -y -z --compact --dec=0 --dec=1 --dec=2 --human --pretty',
      text: '-g -j -o -p',
    }),
    operands: { rest: 'text' },
    endless: { when: 'interval', instead: once },
  },
  lsof: {
    // Excluded: -D writes a device cache, -k and -A read a kernel image. Few options take a number.
    manual: 'lsof(8), lsof 4.95',
    options: spellOptions({
      flag: '+L1 -a -b -C -h -K -l -M -n -N -O -P -Q -R -t -U -v -V -w -X -Z',
      file: '+D +d',
      text: '-c -d -p -u',
      number: '-r',
      'endpoint?': '-i',
      'text?': '-F -g -o -S -s',
    }),
    operands: { rest: 'endpoint' },
    // Refuses values that look like options, because lsof reads these differently for each letter.
    // A named host is looked up in the DNS.
    refuses: ['^[-+]'],
    endless: { when: ['-r'], instead: { drop: ['-r'], add: [] } },
  },
  mpstat: {
    manual: 'mpstat(1), sysstat 12.6',
    options: spellOptions({ flag: '-A -H -n -T -u -V', text: '-I -N -o -P' }),
    operands: { rest: 'number' },
    endless: { when: 'interval', instead: once },
  },
  ...sameGrammar('pgrep pidof', {
    // Excluded: pkill, which shares pgrep's manual and kills; -F, which reads a file.
    manual: 'pgrep(1), procps-ng 4.0; pidof(1), sysvinit 3.06',
    options: spellOptions({
      flag: `-a -A -c -f -i -l -n -o -q -v -w -x -z --list-full --list-name --count --full --ignore-case --newest --oldest --inverse
        --exact --lightweight ${gnu}`,
      text: '-d -g -G -P -r -s -t -u -U --delimiter --euid --group --parent --session --terminal --uid --runstates --ns',
    }),
    operands: { rest: 'text' },
  }),
  pidstat: {
    // Excluded: -e, which runs a program.
    manual: 'pidstat(1), sysstat 12.6',
    options: spellOptions({
      flag: '-d -h -H -I -l -R -r -s -t -u -v -V -w --human',
      text: '-C -G -p -T',
      'text?': '-U',
    }),
    operands: { rest: 'number' },
    refuses: ['^-'],
    endless: { when: 'interval', instead: once },
  },
  pmap: {
    manual: 'pmap(1), procps-ng 4.0',
    options: spellOptions({ flag: '-d -p -q -x -X -XX -V --device --extended --quiet --show-path' }),
    operands: { rest: 'number', min: 1 },
  },
  ps: {
    // Excluded: the BSD letter e and formats, which show environments. ps reads an invalid cluster
    // with a dash (`-auxe`) again without the dash, so no clusters are allowed here: the usual
    // spellings are listed as whole words.
    manual: 'ps(1), procps-ng 4.0',
    style: 'word',
    options: spellOptions({
      flag: `-A -a -c -d -e -F -f -H -j -L -l -M -m -N -P -T -V -w -y -Z -AF -Af -AlF -Al -aux -auxf -auxw -auxww -eF -eH -eLF -eLf
        -eM -eZ -ef -efH -efL -efj -efl -efw -efww -ej -ejH -el -elF -elf -ely -fH -ww --context --cumulative --deselect --forest
        --headers --no-headers --noheaders --no-heading --noheading ${gnu}`,
      text: `-C -G -g -O -o -p -q -s -t -U -u -Ao -eLo -eo -efC -fC -fp -fu -Lp -Tp -lp -lu -wwo -ewwo -ewo --cols --columns --format
        --Group --group --lines --pid --ppid --quick-pid --rows --sort --tty --User --user --width`,
    }),
    bsd: 'aAcfghjlLmnNorsStTuUvwxXZp',
    bsdValues: { o: 'text', p: 'text', U: 'name' },
    operands: { rest: 'number' },
    refuses: ['environ'],
  },
  pstree: {
    manual: 'pstree(1), psmisc 23.6',
    options: spellOptions({
      flag: '-a -A -c -g -G -h -l -n -p -s -S -t -T -u -U -V -Z --arguments --ascii --long --show-pids --show-parents --uid-changes',
      name: '-C -H -N',
    }),
    // Allows several names, although the program shows only one and itself refuses more.
    operands: { rest: 'name' },
  },
  pwdx: { manual: 'pwdx(1), procps-ng 4.0', operands: { rest: 'number', min: 1 } },
  sar: {
    // Excluded: -o, which writes a file that -f reads. `-e` and `-s` are times.
    manual: 'sar(1), sysstat 12.6',
    options: spellOptions({
      flag: '-A -B -b -C -D -d -F -H -h -p -q -R -r -S -t -u -V -v -W -w -x -y -z --human --pretty',
      text: '-I -m -n -P -s -e -i',
      'file?': '-f',
    }),
    operands: { rest: 'text' },
    // Refuses words with a dash, because times are optional and an option may appear in the place
    // of a time.
    refuses: ['^-', '/dev/'],
    endless: { when: 'interval', instead: once },
  },
  slabtop: {
    manual: 'slabtop(1), procps-ng 4.0',
    options: spellOptions({ flag: '-o -h -V --once', text: '-s --sort' }),
    endless: { when: 'always', unless: ['-o', '--once'], instead: { drop: [], add: ['-o'] } },
  },
  top: {
    // Limits top by batch mode, because other modes need a terminal.
    manual: 'top(1), procps-ng 4.0',
    options: spellOptions({
      flag: '-1 -b -B -c -H -h -i -S -s -v --batch --version --help',
      text: '-e -E -o -u -U -p',
      number: '-d -n -w --delay --iterations --width',
    }),
    endless: { when: 'always', unless: ['-n', '--iterations'], instead: { drop: [], add: ['-b', '-n', '1'] } },
  },
  uptime: {
    manual: 'uptime(1), procps-ng 4.0',
    options: spellOptions({ flag: '-h -p -s -V --pretty --since --help --version' }),
  },
  vmstat: {
    manual: 'vmstat(8), procps-ng 4.0',
    options: spellOptions({
      flag: `-a -D -d -f -h -m -n -s -t -V -w -y --active --disk --disk-sum --forks --no-first --one-header --slabs --stats
        --timestamp --wide ${gnu}`,
      text: '-p -S --partition --unit',
    }),
    operands: { rest: 'number' },
    endless: { when: 'interval', instead: once },
  },
  sadf: {
    manual: 'sadf(1), sysstat 12.6',
    options: spellOptions({ flag: '-d -j -p -r -x -t -U -H -T -C', text: '-s -e' }),
    operands: { rest: 'file' },
  },
}
