import { flags, type Grammar, type Grammars, gnu, oneOf, sameGrammar, spellOptions } from '../grammar.ts'

const user: Grammar = {
  manual: 'id(1), who(1), groups(1), coreutils 9.1',
  options: spellOptions({
    flag: `-a -b -d -g -G -H -l -m -n -p -q -r -s -t -u -w -z --all --boot --count --heading ${gnu}`,
  }),
  operands: { rest: 'name' },
}

/** Programs about users, clock, kernel and names of this machine. */
export const host: Grammars = {
  arch: { manual: 'arch(1), coreutils 9.1', options: spellOptions({ flag: gnu }) },
  cal: {
    manual: 'cal(1), bsdmainutils 12',
    options: spellOptions({ flag: '-1 -3 -h -j -m -w -y' }),
    operands: { rest: 'number' },
  },
  date: {
    // Excluded: an operand without + and -s, which set the clock; -f, which prints a list from a
    // file.
    manual: 'date(1), coreutils 9.1',
    options: spellOptions({
      flag: `-R -u --debug --rfc-email --utc --universal ${gnu}`,
      text: '-d --date --rfc-3339',
      'text?': '-I --iso-8601',
      file: '-r --reference',
    }),
    operands: { first: ['text'] },
    // Refuses any operand without +, because with busybox's date it sets the clock.
    refusesOperands: ['^[^+]'],
  },
  dmesg: {
    // Excluded: -c, -C, -D, -E and -n change the ring buffer or the console; -F and -K read another
    // file.
    manual: 'dmesg(1), util-linux 2.38',
    options: spellOptions({
      flag: `-d -e -H -J -k -L -P -p -r -S -T -t -u -V -w -W -x --ctime --reltime --human --json --kernel --nopager --notime --raw
        --decode --show-delta --userspace --follow --follow-new --force-prefix ${gnu}`,
      text: '-f -l --facility --level --since --until --time-format',
      'text?': '--color',
    }),
    endless: {
      when: ['-w', '-W', '--follow', '--follow-new'],
      instead: { drop: ['-w', '-W', '--follow', '--follow-new'], add: [] },
    },
  },
  getconf: {
    manual: 'getconf(1), glibc 2.36',
    options: spellOptions({ flag: '-a' }),
    operands: { first: ['text', 'file'] },
  },
  getent: {
    // Excluded: shadow and gshadow, which hold hashes. Without a key, hosts only reads files; with
    // a key it may query a name server.
    manual: 'getent(1), glibc 2.36',
    commands: {
      ...sameGrammar('group initgroups netgroup networks passwd protocols rpc services', {
        operands: { rest: 'name' },
      }),
      ...sameGrammar('ahosts ahostsv4 ahostsv6 hosts', { operands: { rest: 'host' } }),
    },
  },
  groups: user,
  hostid: { manual: 'hostid(1), coreutils 9.1' },
  hostname: {
    // Excluded: an operand, -b and -F, which set the name.
    manual: 'hostname(1), hostname 3.23',
    options: spellOptions({
      flag: '-A -d -f -i -I -s -V --all-fqdns --all-ip-addresses --domain --fqdn --ip-address --long --short',
    }),
  },
  id: user,
  ...sameGrammar('last lastlog', {
    // Excluded: lastb, which shows what was typed as a name, including passwords; -f, which reads
    // any file, not only one of this kind; -C and -S of lastlog, which write.
    manual: 'last(1), util-linux 2.38; lastlog(8), shadow 4.13',
    options: spellOptions({
      flag: '-a -d -F -i -R -w -x --dns --fullnames --fulltimes --hostlast --ip --nohostname --system --help --version',
      text: '-b -p -s -t -u --present --since --until --time-format --time --user',
      number: '-n --limit',
    }),
    digits: true,
    operands: { rest: 'name' },
  }),
  locale: {
    manual: 'locale(1), glibc 2.36',
    options: spellOptions({ flag: '-a -c -k -m -v' }),
    operands: { rest: 'name' },
  },
  logname: { manual: 'logname(1), coreutils 9.1' },
  lscpu: {
    manual: 'lscpu(1), util-linux 2.38',
    options: spellOptions({
      flag: '-a -b -B -c -C -e -h -J -p -V -x -y --all --bytes --hex --json --offline --online',
      'text?': '--caches --extended --parse',
    }),
  },
  ...sameGrammar('lsipc lslocks lslogins lsns', {
    manual: 'lsipc(1), lslocks(8), lslogins(1), lsns(8), util-linux 2.38',
    options: spellOptions({
      flag: '-a -b -e -f -g -h -i -J -l -m -n -p -q -r -s -S -u -V --bytes --json --noheadings --raw --notruncate',
      text: '-o --output',
    }),
  }),
  lsmem: {
    manual: 'lsmem(1), util-linux 2.38',
    options: spellOptions({
      flag: '-a -b -J -n -P -r --all --bytes --json --noheadings --pairs --raw',
      text: '-o -S --output',
      'text?': '--summary',
    }),
  },
  lsmod: { manual: 'lsmod(8), kmod 30' },
  modinfo: {
    manual: 'modinfo(8), kmod 30',
    options: spellOptions({
      flag: '-0 -a -d -l -n -p -V --author --description --license --parameters --filename',
      text: '-F -k --field',
    }),
    operands: { rest: 'name', min: 1 },
  },
  nproc: { manual: 'nproc(1), coreutils 9.1', options: spellOptions({ flag: `--all ${gnu}`, number: '--ignore' }) },
  pwd: { manual: 'pwd(1), coreutils 9.1', options: spellOptions({ flag: '-L -P' }) },
  sysctl: {
    // Excluded: name=value and -w set; -p and --system load files.
    manual: 'sysctl(8), procps-ng 4.0',
    options: spellOptions({
      flag: '-A -a -b -d -e -N -n -r -V --all --binary --names --values --deprecated --ignore',
      text: '--pattern',
    }),
    operands: { rest: 'text' },
    refuses: ['='],
  },
  tty: { manual: 'tty(1), coreutils 9.1', options: spellOptions({ flag: '-s --silent --quiet' }) },
  ulimit: {
    // Excluded: a value, which would set a limit of the shell and end with the command. An option
    // alone prints the limit.
    manual: 'bash(1), ulimit',
    options: spellOptions({ flag: '-a -c -d -e -f -H -i -l -m -n -p -q -r -s -S -t -u -v -x' }),
  },
  uname: {
    manual: 'uname(1), coreutils 9.1',
    options: spellOptions({
      flag: `-a -i -m -n -o -p -r -s -v --all --kernel-name --kernel-release --machine --nodename ${gnu}`,
    }),
  },
  users: { manual: 'users(1), coreutils 9.1' },
  w: {
    manual: 'w(1), procps-ng 4.0',
    options: spellOptions({
      flag: '-f -h -i -o -s -u -V --from --ip-addr --no-header --no-current --old-style --short',
    }),
    operands: { first: ['name'] },
  },
  whereis: {
    manual: 'whereis(1), util-linux 2.38',
    options: spellOptions({ flag: '-b -m -s -u' }),
    operands: { rest: 'name', min: 1 },
  },
  which: {
    manual: 'which(1), debianutils 5.7',
    options: spellOptions({ flag: '-a -s --all' }),
    operands: { rest: 'name', min: 1 },
  },
  who: user,
  whoami: { manual: 'whoami(1), coreutils 9.1', options: spellOptions({ flag: gnu }) },
  chage: { ...oneOf('chage(1), shadow 4.13', '-l --list', '-i --iso8601'), operands: { first: ['name'] } },
  faillog: flags('faillog(8), shadow 4.13', '-a --all', '-u --user'),
  faillock: { manual: 'faillock(8), Linux-PAM 1.5', options: spellOptions({ name: '--user' }) },
}

/** Programs about the hardware of the machine, and its temperatures. */
export const hardware: Grammars = {
  dmidecode: {
    // Excluded: --dump-bin writes, --from-dump reads a file.
    manual: 'dmidecode(8), dmidecode 3.4',
    options: spellOptions({
      flag: '-h -q -u -V --help --no-sysfs --quiet --version',
      text: '-H -s -t --handle --string --type',
    }),
  },
  ipmitool: {
    // Excluded: -H connects to another machine, -f reads a password, exec and shell read commands;
    // clear, set, power and user change something.
    manual: 'ipmitool(1), 1.8',
    options: spellOptions({ flag: '-c -v -V -h' }),
    commands: {
      ...sameGrammar('chassis', {
        commands: {
          power: { commands: { status: {} } },
          ...sameGrammar('poh restart_cause status', {}),
        },
      }),
      fru: {
        bare: true,
        commands: {
          ...sameGrammar('list', {}),
          print: { operands: { first: ['number'] } },
        },
      },
      mc: { commands: { ...sameGrammar('guid info selftest', {}) } },
      power: { commands: { status: {} } },
      sdr: {
        bare: true,
        commands: {
          ...sameGrammar('elist info list', { operands: { first: ['name'] } }),
          ...sameGrammar('type', { operands: { first: ['text'] } }),
        },
      },
      sel: {
        bare: true,
        commands: {
          ...sameGrammar('elist list', { operands: { rest: 'name' } }),
          ...sameGrammar('info', {}),
        },
      },
      sensor: {
        bare: true,
        commands: {
          list: {},
          ...sameGrammar('get reading', { operands: { rest: 'text', min: 1 } }),
        },
      },
    },
  },
  lshw: {
    // Excluded: -dump writes, -X opens a window.
    manual: 'lshw(1), lshw 02.19',
    style: 'word',
    options: spellOptions({
      flag: '-businfo -html -json -notime -numeric -quiet -sanitize -short -xml -version',
      text: '-C -c -class -disable -enable',
    }),
  },
  lspci: {
    // Excluded: -A and -O choose back ends, -q queries the DNS, -Q writes a cache, -F and -p read
    // files.
    manual: 'lspci(8), pciutils 3.9',
    options: spellOptions({ flag: '-b -D -k -m -mm -n -nn -P -PP -t -v -vv -vvv -x -xx -xxx', text: '-d -s' }),
  },
  lsusb: {
    manual: 'lsusb(8), usbutils 014',
    options: spellOptions({ flag: '-t -v -V --tree --verbose --version', text: '-d -s' }),
  },
  'nvidia-smi': {
    manual: 'nvidia-smi(1), driver 535',
    style: 'word',
    endless: { when: ['-l', '--loop'], instead: { drop: ['-l', '--loop'], add: [] } },
    bare: true,
    // Excluded: -r, -c of nvlink, -pm and the like, which reset or set.
    commands: {
      topo: { options: spellOptions({ flag: '-m --matrix -p2p', name: '-i -n' }), operands: { first: ['name'] } },
      nvlink: {
        options: spellOptions({
          flag: '-s --status -e --errorcounters -p --pcibusid -R --remotelinkinfo',
          number: '-i -l',
        }),
      },
      ...sameGrammar('dmon pmon', {
        options: spellOptions({ count: '-c', text: '-s -o -i', number: '-d', flag: '--gpm-metrics' }),
        endless: { when: 'always', unless: ['-c'], instead: { drop: [], add: ['-c', '1'] } },
      }),
    },
    options: spellOptions({
      number: '-l --loop',
      flag: '-L -q -x --list-gpus --query',
      text: '-d -i --display --format --id',
      'text?': '--query-gpu --query-compute-apps --format --id',
    }),
  },
  numactl: {
    manual: 'numactl(8), numactl 2.0',
    options: spellOptions({ flag: '-H -s --hardware --show' }),
    requires: ['-H', '-s', '--hardware', '--show'],
  },
  numastat: { manual: 'numastat(8), numactl 2.0', options: spellOptions({ flag: '-c -m -n -s -v -z', text: '-p' }) },
  sensors: {
    manual: 'sensors(1), lm-sensors 3.6',
    options: spellOptions({ flag: '-A -f -h -j -u -v --no-adapter --fahrenheit' }),
    operands: { rest: 'name' },
  },
}
