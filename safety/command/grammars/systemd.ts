import { type Grammar, type Grammars, oneOf, plain, sameGrammar, spellOptions, verbs } from '../grammar.ts'

// Excluded everywhere: -H and -M connect to another machine, --root uses another tree.
const common = '-l -q --full --no-ask-password --no-legend --no-pager --quiet -h --help --version'

const look = (manual: string, operands?: Grammar['operands']): Grammar => ({
  manual,
  ...(operands ? { operands } : {}),
})
const names = { rest: 'text' } as const
const someNames = { rest: 'text', min: 1 } as const

/** Output formats of the journal that show every field. */
const allFields = '^(json|json-pretty|json-sse|json-seq|verbose|export)$'

/** Programs of systemd 252. Actions that change state are not listed. */
export const systemd: Grammars = {
  bootctl: {
    manual: 'bootctl(1), systemd 252',
    options: spellOptions({ flag: common }),
    bare: true,
    commands: sameGrammar('is-installed list status', look('bootctl(1)')),
  },
  busctl: {
    // Excluded: call, set-property and emit change something; monitor and capture never end; tree,
    // introspect and get-property may start a service.
    manual: 'busctl(1), systemd 252',
    options: spellOptions({
      flag: `${common} --system --user --unique --acquired --activatable --show-machine --list -j --json=short`,
    }),
    bare: true,
    commands: { ...sameGrammar('list', look('busctl(1)')), ...sameGrammar('status', look('busctl(1)', names)) },
  },
  coredumpctl: {
    // Excluded: dump writes and debug runs a program.
    manual: 'coredumpctl(1), systemd 252',
    options: spellOptions({
      flag: `${common} -1 -r --reverse --all`,
      number: '-n',
      'fields:journal': '-F --field',
      text: '-S -U --since --until --json',
    }),
    bare: true,
    commands: sameGrammar('info list', look('coredumpctl(1)', names)),
  },
  hostnamectl: {
    // Excluded: operands of the old verbs, which set. `hostname` without one prints.
    manual: 'hostnamectl(1), systemd 252',
    options: spellOptions({ flag: `${common} --static --transient --pretty -j`, text: '--json' }),
    bare: true,
    commands: sameGrammar('hostname status', look('hostnamectl(1)')),
  },
  journalctl: {
    // Excluded: --vacuum-*, --rotate, --flush, --sync, --relinquish-var, --smart-relinquish-var,
    // --update-catalog and --setup-keys change something; --file, --root and --image read another
    // place; --cursor-file writes.
    manual: 'journalctl(1), systemd 252',
    options: spellOptions({
      flag: `${common} -a -b -e -f -k -m -N -r -x -W --all --catalog --disk-usage --dmesg --fields --follow --header --list-boots
        --list-catalog --local --merge --no-full --no-hostname --no-tail --pager-end --reverse --show-cursor --system --user
        --utc --verify`,
      text: `-c -g -o -p -S -t -u -U --after-cursor --cursor --facility --grep --identifier --namespace
        --output --priority --since --unit --until --user-unit`,
      'fields:journal': '-F --field --output-fields',
      number: '-n --lines',
      'text?': '--boot --case-sensitive',
    }),
    // Requires named fields in these formats: all fields include command lines and, for a crash,
    // the environment.
    needs: { value: allFields, options: ['--output-fields'] },
    // Operands: FIELD=value, `+`, the path of a program or device, and the offset of -b.
    operands: names,
    digits: true,
    endless: {
      when: ['-f', '--follow'],
      enough: ['-n', '--lines', '-S', '--since', '-U', '--until', '-b', '--boot'],
      instead: { drop: ['-f', '--follow'], add: ['-n', '200', '--since', '10 min ago'] },
    },
  },
  localectl: {
    manual: 'localectl(1), systemd 252',
    options: spellOptions({ flag: common }),
    bare: true,
    commands: sameGrammar('list-keymaps list-locales status', look('localectl(1)')),
  },
  loginctl: {
    manual: 'loginctl(1), systemd 252',
    options: spellOptions({ flag: `${common} -a --all --value`, text: '-n -o -p --lines --output --property' }),
    bare: true,
    commands: {
      ...sameGrammar('list-seats list-sessions list-users', look('loginctl(1)')),
      ...sameGrammar('seat-status session-status show-seat show-session show-user user-status', {
        ...look('loginctl(1)', names),
        refuses: [allFields],
      }),
    },
  },
  machinectl: {
    manual: 'machinectl(1), systemd 252',
    options: spellOptions({ flag: `${common} -a --all --value`, text: '-n -o -p --lines --output --property' }),
    bare: true,
    commands: {
      ...sameGrammar('list list-images', look('machinectl(1)')),
      ...sameGrammar('image-status show show-image status', {
        ...look('machinectl(1)', names),
        refuses: [allFields],
      }),
    },
  },
  networkctl: {
    manual: 'networkctl(1), systemd 252',
    options: spellOptions({ flag: `${common} -a -s --all --stats`, number: '-n --lines', text: '--json' }),
    bare: true,
    commands: sameGrammar('label list lldp status', look('networkctl(1)', names)),
  },
  resolvectl: {
    manual: 'resolvectl(1), systemd 252',
    options: spellOptions({
      flag: `${common} -4 -6 --cache=no --cname=no --legend=no --search=no --zone=no`,
      text: '-c -i -p -t --class --interface --protocol --type',
    }),
    bare: true,
    commands: {
      // Excluded: a second operand, which sets; the first is a network link.
      ...sameGrammar(
        'default-route dns dnsovertls dnssec domain llmnr mdns nta',
        look('resolvectl(1)', { first: ['name'] }),
      ),
      ...sameGrammar('statistics', look('resolvectl(1)')),
      ...sameGrammar('status', look('resolvectl(1)', { rest: 'name' })),
      ...sameGrammar('query', look('resolvectl(1)', { rest: 'host', min: 1 })),
    },
  },
  systemctl: {
    // Excluded: show-environment. For show, properties must be named, because some hold secrets.
    manual: 'systemctl(1), systemd 252',
    options: spellOptions({
      flag: `${common} -a -r --after --all --before --failed --plain --recursive --reverse
        --show-types --system --user --value --with-dependencies -T`,
      text: '-n -o -p -P -t --lines --output --property --state --timestamp --type --what',
    }),
    bare: true,
    commands: {
      ...sameGrammar('get-default is-system-running list-jobs list-machines', look('systemctl(1)')),
      ...sameGrammar(
        'list-automounts list-dependencies list-paths list-sockets list-timers list-unit-files list-units',
        look('systemctl(1)', names),
      ),
      show: {
        ...look('systemctl(1)', names),
        requires: ['-p', '-P', '--property'],
        // Refuses an empty list of names, which means all.
        refuses: ['environ', 'credential', '[*]', '^,*$', '^,|,,|,$'],
      },
      // Refuses these formats, as in journalctl: all fields include command lines and environments.
      status: { ...look('systemctl(1)', names), refuses: [allFields] },
      ...sameGrammar('cat is-active is-enabled is-failed', look('systemctl(1)', someNames)),
    },
  },
  'systemd-analyze': {
    // Excluded: verify loads generators; the `set-*` sub-commands of old releases change settings.
    // `dump` prints much but only reads.
    manual: 'systemd-analyze(1), systemd 252',
    options: spellOptions({
      flag: `${common} --system --user --order --require`,
      text: '--fuzz --from-pattern --to-pattern',
      count: '--iterations',
    }),
    bare: true,
    commands: {
      // Excluded: dump, which prints the environment of every unit.
      ...sameGrammar('blame time unit-paths', look('systemd-analyze(1)')),
      ...sameGrammar('calendar timespan timestamp', look('systemd-analyze(1)', someNames)),
      ...sameGrammar('critical-chain dot exit-status security syscall-filter', look('systemd-analyze(1)', names)),
    },
  },
  'systemd-cgls': {
    manual: 'systemd-cgls(1), systemd 252',
    options: spellOptions({ flag: `${common} -a -k --all`, text: '-u --unit --user-unit' }),
    operands: { rest: 'text' },
  },
  'systemd-cgtop': {
    manual: 'systemd-cgtop(1), systemd 252',
    options: spellOptions({
      flag: '-1 -b -c -i -k -m -p -P -r -t --batch --raw -h --help --version',
      number: '-d -n --delay --iterations --depth',
      text: '--cpu --order --recursive',
    }),
    operands: { first: ['text'] },
    endless: { when: 'always', unless: ['-1', '-n', '--iterations'], instead: { drop: [], add: ['-b', '-n', '1'] } },
  },
  ...sameGrammar('systemd-detect-virt', {
    manual: 'systemd-detect-virt(1), systemd 252',
    options: spellOptions({ flag: '-c -v -q -r --container --vm --chroot --private-users --list -h --help --version' }),
  }),
  timedatectl: {
    manual: 'timedatectl(1), systemd 252',
    options: spellOptions({ flag: `${common} -a --all --value`, text: '-p --property' }),
    bare: true,
    commands: sameGrammar('list-timezones show show-timesync status timesync-status', look('timedatectl(1)')),
  },
  'systemd-mount': { ...oneOf('systemd-mount(1), systemd 252', '--list', '--no-pager --no-legend --full -l') },
  'systemd-id128': verbs('systemd-id128(1), systemd 252', 'machine-id|boot-id|invocation-id'),
  'systemd-path': plain('systemd-path(1), systemd 252', {}, { operands: { rest: 'name' } }),
  'systemd-resolve': { ...oneOf('systemd-resolve(1), systemd 238', '--status --statistics', '--no-pager -4 -6') },
  'systemd-escape': plain(
    'systemd-escape(1), systemd 252',
    spellOptions({ flag: '-u -m -p --unescape --mangle --path', text: '--suffix --template' }),
  ),
}
