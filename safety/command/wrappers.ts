import { elsewhere } from './remote-exec-wrappers.ts'

/**
 * Commands that run another command. Each wrapper has a grammar of its options, so that the inner
 * command is found in every call; an unknown option needs approval.
 */
export type Wrapper = {
  /** Options without and with a value. Any other option is unknown. */
  flags?: string
  values?: string
  /** Options whose value is a shell script. */
  scripts?: string
  /** Known options with which an inert wrapper does more. */
  alters?: string
  /** Values with which such an option changes nothing, as a regular expression. */
  inertValues?: string
  /** Options that ask for a terminal. */
  tty?: string
  /** Whether `NAME=value` may precede the command. */
  assignments?: true
  /** Number of operands before the command: a duration, a directory, a host. */
  before?: number
  /** Whether options may also follow these operands. */
  interspersed?: true
  /** The rest of the words: the argv of the command, a text for a shell, or nothing. */
  rest?: 'argv' | 'shell' | 'none'
  /**
   * The effect that the wrapper adds. `inert`: nothing, so that an inner read stays a read. `root`:
   * another user's rights. `place`: an inner read stays a read if the place was looked up. If
   * absent, the wrapper needs approval.
   */
  adds?: 'inert' | 'root' | 'place'
  /** Programs that may run inside the wrapper, if they differ from the usual programs. */
  programs?: string
  /** The kind of place that the first operand names. */
  place?: 'host' | 'name'
  /** Sub-commands that run something; with any other sub-command the program is not a wrapper. */
  commands?: Readonly<Record<string, Wrapper>>
}

const loginShell: Wrapper = {
  flags: '- -l -m -p -f -P --login --preserve-environment --fast --pty',
  values: '-g -G -s -w -u --group --supp-group --shell --whitelist-environment --user',
  scripts: '-c --command --session-command',
  before: 1,
  interspersed: true,
  rest: 'argv',
  adds: 'root',
}

const plain: Wrapper = { rest: 'argv' }
/** Programs that contain many programs, each with at most the options of the original. */
const applets: Wrapper = {
  programs:
    'arch basename cat cksum cmp comm cut date df diff dirname du echo egrep expr false fgrep fold free getconf grep groups head hexdump hostid id last ls lsmod lsof lspci lsusb md5sum nproc nslookup od pidof pmap printenv ps pstree pwd readlink realpath seq sha1sum sha256sum sha512sum sleep sort stat strings tac tail test tr true tty uname uniq uptime users w wc which who whoami xxd zcat',
  rest: 'argv',
  adds: 'inert',
}
/** Sets another personality. An architecture may precede the command. */
const personality: Wrapper = {
  flags:
    '-B -F -I -L -R -S -T -X -Z -v -3 --32bit --fdpic-funcptrs --short-inode --addr-compat-layout --addr-no-randomize --whole-seconds --sticky-timeouts --read-implies-exec --mmap-page-zero --3gb --4gb --uname-2.6 --verbose x86_64 i386 i686 linux32 linux64 aarch64',
  rest: 'argv',
}

const byName: Readonly<Record<string, Wrapper>> = {
  // Wrappers that give another user's rights.
  sudo: {
    flags: `-A -b -B -E -e -H -i -K -k -l -n -N -P -S -s -V -v --askpass --background --bell --edit --list --login --non-interactive
        --preserve-env --preserve-groups --remove-timestamp --reset-timestamp --set-home --shell --stdin --validate`,
    values: `-C -D -g -h -p -R -r -T -t -U -u --chdir --chroot --close-from --command-timeout --group --host --other-user --prompt
        --role --type --user`,
    assignments: true,
    rest: 'argv',
    adds: 'root',
  },
  doas: { flags: '-L -n -s', values: '-a -C -u', assignments: true, rest: 'argv', adds: 'root' },
  pkexec: { flags: '--disable-internal-agent --keep-cwd', values: '--user', rest: 'argv', adds: 'root' },
  gosu: { before: 1, rest: 'argv', adds: 'root' },
  run0: {
    flags: '--no-ask-password --pipe --pty --lightweight --via-shell -i',
    values:
      '-u -g -D --unit --property --description --slice --user --group --nice --chdir --setenv --background --machine',
    rest: 'argv',
    adds: 'root',
  },
  'su-exec': { before: 1, rest: 'argv', adds: 'root' },
  su: loginShell,
  runuser: { ...loginShell, before: 0 },
  // Wrappers for duration, priority and buffering.
  timeout: {
    flags: '-f -p -v --foreground --preserve-status --verbose',
    values: '-k -s --kill-after --signal',
    before: 1,
    rest: 'argv',
    adds: 'inert',
  },
  nice: { flags: '-[0-9]', values: '-n --adjustment', rest: 'argv', adds: 'inert' },
  ionice: {
    flags: '-t --ignore',
    values: '-c -n -p -P -u --class --classdata --pid',
    alters: '-p -P -u --pid',
    rest: 'argv',
    adds: 'inert',
  },
  stdbuf: { values: '-i -o -e --input --output --error', rest: 'argv', adds: 'inert' },
  time: {
    flags: '-p -v -a -q -V --portability --verbose --append --quiet',
    values: '-o -f --output --format',
    alters: '-o -a --output --append',
    rest: 'argv',
    adds: 'inert',
  },
  env: {
    flags: '-i - -0 -v --ignore-environment --null --debug',
    values: '-u -C -P -a --unset --chdir --argv0',
    scripts: '-S --split-string',
    alters: '-u -C -P -a --unset --chdir --argv0',
    assignments: true,
    rest: 'argv',
    adds: 'inert',
  },
  command: { flags: '-p', rest: 'argv', adds: 'inert' },
  busybox: applets,
  toybox: applets,
  chrt: {
    flags:
      '-a -b -d -f -i -o -r -R -m -v -p --all-tasks --batch --deadline --fifo --idle --other --rr --reset-on-fork --verbose --pid',
    values: '-T -P -D --sched-runtime --sched-period --sched-deadline',
    before: 1,
    rest: 'argv',
  },
  taskset: { flags: '-a -c -p --all-tasks --cpu-list --pid', before: 1, rest: 'argv' },
  numactl: {
    flags: '-l -s -H --localalloc --show --hardware',
    values: '-N -m -C -p -i --cpunodebind --membind --physcpubind --preferred --interleave',
    rest: 'argv',
  },
  prlimit: {
    flags: '-[cdefilmnqrstuvxy] --[a-z]+=.*',
    values: '-p -o --pid --output',
    rest: 'argv',
  },
  setarch: personality,
  linux32: personality,
  linux64: personality,
  i386: personality,
  x86_64: personality,
  uname26: personality,
  // The dynamic loader, which runs its operand.
  ...Object.fromEntries(
    ['ld.so', 'ld-linux.so.2', 'ld-linux-x86-64.so.2', 'ld-linux-aarch64.so.1', 'ld-musl-x86_64.so.1'].map((name) => [
      name,
      { flags: '--list --verify', values: '--library-path --preload --argv0 --audit', rest: 'argv' } as const,
    ]),
  ),
  // Wrappers whose command continues after the calling shell ends.
  nohup: plain,
  setsid: { flags: '-c -f -w --ctty --fork --wait', rest: 'argv' },
  'systemd-run': {
    flags: `-r -d -P -q -G -t -S --scope --user --system --remain-after-exit --send-sighup --no-block --wait --pty --pipe --quiet
        --collect --shell --same-dir --no-ask-password`,
    values: `-u -p -E -H -M --unit --property --description --slice --service-type --uid --gid --nice --working-directory --setenv
        --host --machine --on-active --on-boot --on-startup --on-unit-active --on-calendar --timer-property --path-property`,
    rest: 'argv',
  },
  'systemd-inhibit': { values: '--what --who --why --mode', rest: 'argv' },
  // Builtins of the shell.
  builtin: plain,
  exec: { flags: '-c -l', values: '-a', rest: 'argv' },
  eval: { rest: 'shell' },
  // Wrappers with another root or another namespace.
  chroot: { flags: '--skip-chdir', values: '--userspec --groups', before: 1, rest: 'argv' },
  unshare: {
    flags: `-m -u -i -n -p -U -C -T -f -r -c --mount --uts --ipc --net --pid --user --cgroup --time --fork --map-root-user
        --map-current-user --mount-proc --kill-child --keep-caps`,
    values:
      '-R -w -S -G --root --wd --setuid --setgid --propagation --setgroups --map-user --map-group --monotonic --boottime',
    rest: 'argv',
  },
  nsenter: {
    flags: `-a -m -u -i -n -p -C -U -T -F -Z -e --all --mount --uts --ipc --net --pid --cgroup --user --time --no-fork
        --preserve-credentials --follow-context --root --wd`,
    values: '-t -S -G -r -w --target --setuid --setgid',
    rest: 'argv',
  },
  setpriv: {
    flags: '--clear-groups --keep-groups --init-groups --no-new-privs --reset-env --dump -d',
    values: `--reuid --regid --ruid --euid --rgid --egid --groups --inh-caps --ambient-caps --bounding-set --securebits --pdeathsig
        --selinux-label --apparmor-profile`,
    rest: 'argv',
  },
  capsh: { values: '--user --uid --gid --drop', rest: 'none' },
  ip: {
    flags: '-4 -6 -0 -a -b -br -brief -c -d -details -h -j -json -o -oneline -p -r -s -stats -statistics -t -V',
    values: '-n -netns -f -family -l -rc',
    commands: { netns: { commands: { exec: { before: 1, rest: 'argv', adds: 'place', place: 'name' } } } },
  },
  ...elsewhere,
  // Programs that repeat, lock, or trace.
  watch: {
    flags: `-b -c -C -d -e -g -p -r -t -w -x --beep --color --no-color --differences --errexit --chgexit --precise --no-rerun
        --no-title --no-wrap --exec`,
    values: '-n -q --interval --equexit',
    rest: 'shell',
    adds: 'inert',
  },
  script: {
    flags: '-a -e -f -q --append --return --flush --quiet',
    values: '-E -I -O -B -T -m -o --log-out --log-in --log-io',
    scripts: '-c --command',
    rest: 'none',
  },
  flock: {
    flags: '-s -x -e -u -n -o -v -F --shared --exclusive --unlock --nonblock --close --verbose --no-fork',
    values: '-w -E --timeout --wait --conflict-exit-code',
    scripts: '-c --command',
    before: 1,
    interspersed: true,
    rest: 'argv',
  },
  strace: {
    flags: '-c -C -d -f -ff -h -i -k -n -N -q -qq -r -t -tt -ttt -T -v -V -w -x -xx -y -yy -z -Z',
    values: '-a -b -e -E -I -o -O -p -P -s -S -u -U -X',
    rest: 'argv',
  },
  ltrace: { flags: '-c -f -i -r -S -t -T', values: '-a -e -l -n -o -p -s -u', rest: 'argv' },
  gdb: {
    flags: '-batch --batch -q -quiet -nx -n --args -args',
    values: '-p -x -ix -cd',
    scripts: '-ex -iex --eval-command',
    rest: 'argv',
  },
  perf: {
    commands: {
      stat: { flags: '-a -d', values: '-e -p -C -o', rest: 'argv' },
      record: { flags: '-a -g', values: '-e -p -C -o -F', rest: 'argv' },
    },
  },
  fakeroot: plain,
  eatmydata: plain,
  unbuffer: plain,
  proxychains: { flags: '-q', values: '-f', rest: 'argv' },
  proxychains4: { flags: '-q', values: '-f', rest: 'argv' },
  firejail: plain,
  faketime: { before: 1, rest: 'argv' },
  cgexec: { values: '-g', rest: 'argv' },
  'start-stop-daemon': {
    flags: '-S -K -b -m -q --start --stop --background --make-pidfile',
    values: '-p -u -c -d --pidfile --user --chuid --chdir',
    scripts: '-x -a --exec --startas',
    rest: 'none',
  },
  screen: { flags: '-d -m -dm -dmS -D -R', values: '-S -c -t', rest: 'argv' },
  tmux: {
    values: '-L -S -f',
    commands: {
      new: { flags: '-d -A', values: '-s -n -c', rest: 'shell' },
      'new-session': { flags: '-d -A', values: '-s -n -c', rest: 'shell' },
      'run-shell': { flags: '-b', rest: 'shell' },
    },
  },
}

export const wrappers: ReadonlyMap<string, Wrapper> = new Map(Object.entries(byName))
