import type { Redirection, Word } from './parse.ts'
import { leadsTo, leadsToDisk, normalise, type PathList, pathList } from './paths.ts'
import { expandBraces, globsMeet } from './patterns.ts'

/**
 * Commands that never run, even with an approval, because they end the host or destroy more than
 * any incident can justify. Whole words are compared, never parts of a text. A firewall flush, a
 * deleted volume or a dropped table is not listed: a person may decide about it.
 */
type Forbidden = { reason: string; token: string }

const systemTrees = pathList(
  `/ /bin /boot /dev /etc /home /lib /lib32 /lib64 /libx32 /proc /root /run /sbin /sys /usr /var /usr/bin /usr/lib /usr/lib64
   /usr/sbin /usr/local /usr/share /usr/libexec /var/lib /lib/modules /lib/systemd /boot/efi /boot/grub /etc/ssh /etc/pam.d /etc/ssl
   /etc/systemd /var/lib/dpkg /var/lib/rpm /var/lib/docker /var/lib/containerd /var/lib/etcd /var/lib/kubelet /var/lib/mysql
   /var/lib/postgresql /var/lib/pgsql /var/lib/mongodb /var/lib/vz`.split(/\s+/),
)
const dataTrees = pathList(['/opt', '/srv', '/mnt', '/media', '/home/*', '/Users', '/System', '/Library'])

const systemFiles = pathList(
  `/etc/passwd /etc/shadow /etc/group /etc/gshadow /etc/sudoers /etc/sudoers.d/** /etc/fstab /etc/crypttab /etc/pam.d/** /boot/**
   /etc/ssh/sshd_config /etc/nsswitch.conf /etc/ld.so.conf /etc/ld.so.cache /lib/systemd/** /usr/lib/systemd/** /bin/** /sbin/**
   /usr/bin/** /usr/sbin/** /lib/** /lib64/** /usr/lib/x86_64-linux-gnu/libc.so*`.split(/\s+/),
)
const kernelSwitches = pathList(['/proc/sysrq-trigger', '/sys/power/state', '/sys/kernel/debug/provoke-crash/**'])

type Call = {
  name: string
  words: readonly Word[]
  texts: readonly string[]
  letters: ReadonlySet<string>
  longs: ReadonlySet<string>
  operands: readonly Word[]
  directories: readonly string[]
}

type Rule = (call: Call) => string | null

/** Returns why a command never runs; null if at least a person may approve it. */
export function forbidden(words: readonly Word[], directories: readonly string[]): Forbidden | null {
  const first = words[0]
  if (!first) return null
  const expanded = words.some(mayHoldBraces) ? words.flatMap(withoutBraces) : words
  const written = (expanded[0] ?? first).text.replace(/^\\/, '')
  for (const name of namesOf(written, first)) {
    const rule = rules.get(name) ?? (name.startsWith('mkfs.') && /^mkfs\.\w+$/.test(name) ? onDisk : undefined)
    const token = rule?.(callOf(name, expanded, directories)) ?? null
    if (token !== null)
      return { reason: `${name} ${token} is never run, even with an approval`.replace('  ', ' '), token: token || name }
  }
  return null
}

const mayHoldBraces = ({ literal, text }: Word): boolean => !literal && text.includes('{')

const withoutBraces = (word: Word): Word[] =>
  word.literal ? [word] : expandBraces(word.text).map((text) => (text === word.text ? word : { ...word, text }))

/** Returns the base name, or every listed name that a pattern such as `/???/r?boot` may match. */
function namesOf(written: string, first: Word): string[] {
  const name = written.slice(written.lastIndexOf('/') + 1)
  if (first.literal || !/[*?[]/.test(name)) return [name]
  // Ignores a bare `*`, which may match anything, so that only the words after it count.
  const says = /[a-z]{2}/i.test(name) || (/\/[?[]*[a-z]/i.test(written) && /[a-z]/i.test(name))
  return [...rules.keys()].filter((known) => (says || !endsHosts.has(known)) && globsMeet(name, known))
}

function callOf(name: string, words: readonly Word[], directories: readonly string[]): Call {
  const letters = new Set<string>()
  const longs = new Set<string>()
  const operands: Word[] = []
  let ended = false
  for (const word of words.slice(1)) {
    if (!ended && word.text === '--') ended = true
    else if (!ended && /^--./.test(word.text)) longs.add(word.text.replace(/=.*$/, ''))
    else if (!ended && /^-./.test(word.text)) for (const letter of word.text.slice(1)) letters.add(letter)
    else operands.push(word)
  }
  return { name, words, texts: words.map((word) => word.text), letters, longs, operands, directories }
}

/** Reads `/etc/*` as `/etc`, because the pattern names every entry of `/etc`. */
const wholeOf = (word: Word): Word => {
  const text = word.text.replace(/(^|\/)(?:\*|\.\*|\.\[!\.\]\*|\{\*,\.\*\}|\*\.\*)$/, '$1') || '.'
  return text === word.text ? word : { ...word, text, pattern: /[*?[]/.test(text) ? text : null }
}

/**
 * Whether a path is a whole tree. A path that only goes up is a whole tree; `../app` belongs to a
 * project.
 */
function isTree(word: Word, trees: PathList, directories: readonly string[]): boolean {
  const whole = wholeOf(word)
  const [path] = normalise(whole.text) as [string]
  if (/^(?:\.\.\/?)+$/.test(path)) return true
  if (!path.startsWith('..')) return leadsTo(whole, trees, directories)
  return directories.some((directory) => leadsTo({ ...whole, text: `${directory}/${path}`, pattern: null }, trees, []))
}

const tree = (words: readonly Word[], directories: readonly string[], data: boolean): string | null =>
  words.find((word) => isTree(word, systemTrees, directories) || (data && isTree(word, dataTrees, directories)))
    ?.text ?? null

const has = (call: Call, ...names: string[]): boolean =>
  names.some((name) => (name.startsWith('--') ? call.longs.has(name) : call.letters.has(name)))

const always: Rule = (call) => (has(call, '--help', '--version') || call.texts[1] === '-c' ? null : '')
const onDisk: Rule = (call) => disk(call, call.operands)
const disk = (call: Call, words: readonly Word[]): string | null =>
  words.find((word) => leadsToDisk(word, call.directories))?.text ?? null
const firstOf =
  (...verbs: string[]): Rule =>
  (call) =>
    call.operands[0] && verbs.includes(call.operands[0].text) ? call.operands[0].text : null
const withAny =
  (...options: string[]): Rule =>
  (call) =>
    call.texts.find((text) => options.some((option) => text === option || text.startsWith(`${option}=`))) ?? null
const written = (call: Call, words: readonly Word[]): string | null =>
  disk(call, words) ??
  words.find((word) => leadsTo(word, systemFiles, call.directories) || leadsTo(word, kernelSwitches, call.directories))
    ?.text ??
  null

const powerTargets =
  /^(?:reboot|poweroff|halt|kexec|rescue|emergency|soft-reboot|shutdown|exit|runlevel[016])(?:\.target)?$/

const remove: Rule = (call) => {
  if (has(call, '--no-preserve-root')) return '--no-preserve-root'
  if (has(call, 'r', 'R', '--recursive'))
    return tree(call.operands, call.directories, true) ?? systemFile(call, call.operands)
  return systemFile(call, call.operands)
}
const systemFile = (call: Call, words: readonly Word[]): string | null =>
  words.find((word) => !/^\.\./.test(word.text) && leadsTo(word, systemFiles, call.directories))?.text ?? null

const changeTree: Rule = (call) => (has(call, 'R', '--recursive') ? tree(call.operands, call.directories, false) : null)

const filters =
  /^-(?:i?name|i?path|i?wholename|i?regex|[acm]time|[acm]min|newer\w*|size|user|group|uid|gid|inum|empty|perm|nouser|nogroup)$/

const find: Rule = (call) => {
  const roots = call.words.slice(
    1,
    1 +
      Math.max(
        0,
        call.texts.slice(1).findIndex((text) => /^(?:-[a-z]{2}|[(!])/.test(text)),
      ),
  )
  const deletes = call.texts.some(
    (text, at) =>
      text === '-delete' ||
      (/^-(?:exec|execdir|ok|okdir)$/.test(text) &&
        call.texts.slice(at, at + 6).some((next) => /(?:^|\/)(?:rm|shred|unlink)$/.test(next))),
  )
  if (!deletes || call.texts.some((text) => filters.test(text))) return null
  return tree(roots, call.directories, true)
}

const copy: Rule = (call) => {
  const target = call.operands.at(-1)
  if (!target || call.operands.length < 2) return null
  const emptied = call.operands.slice(0, -1).some((word) => normalise(word.text)[0] === '/dev/null')
  return disk(call, [target]) ?? (emptied ? systemFile(call, [target]) : null)
}

const kill: Rule = (call) => {
  const words = call.texts.slice(1)
  if (words[0] === '-0' || words[0] === '-l' || words[0] === '-L') return null
  const signalled = /^-/.test(words[0] ?? '')
  const processes = signalled ? words.slice(/^-(?:s|n|-signal)$/.test(words[0]!) ? 2 : 1) : words
  return processes.find((process) => process === '1' || process === '-1') ?? null
}

/**
 * Services that stop or restart the host, with or without `.service`. A target needs its ending
 * `.target`, unless the verb accepts no other unit.
 */
const powerServices =
  /^(?:systemd-(?:poweroff|reboot|soft-reboot|halt|kexec|exit)|rescue|emergency)(?:\.service)?$|^ctrl-alt-del\.target$/

const isPowerUnit = (unit: string, onlyTargets: boolean): boolean =>
  powerServices.test(unit) || (powerTargets.test(unit) && (onlyTargets || unit.includes('.')))

/** Programs that are refused by name, whatever their arguments are. */
const endsHosts: ReadonlySet<string> = new Set(['reboot', 'shutdown', 'poweroff', 'halt', 'killall5', 'vgremove'])

const rules: ReadonlyMap<string, Rule> = new Map<string, Rule>([
  ...['reboot', 'shutdown', 'poweroff', 'halt', 'killall5'].map((name): [string, Rule] => [name, always]),
  ['init', firstOf('0', '6', '1', 's', 'S')],
  ['telinit', firstOf('0', '6', '1', 's', 'S')],
  ['kexec', (call) => (has(call, 'e', '--exec', '--force') ? '-e' : null)],
  [
    'systemctl',
    (call) => {
      const [verb, ...units] = call.operands.map((word) => word.text)
      if (verb === undefined) return null
      if (/^(?:isolate|start|restart|try-restart|reload-or-restart|default)$/.test(verb))
        return units.find((unit) => isPowerUnit(unit, verb === 'isolate')) ?? null
      return powerTargets.test(verb) && units.length === 0 && verb !== 'exit' ? verb : null
    },
  ],
  ['loginctl', firstOf('reboot', 'poweroff', 'halt')],
  ['ipmitool', (call) => (/ (?:chassis )?power (?:off|cycle|reset|soft)$/.test(call.texts.join(' ')) ? 'power' : null)],
  ...['mkfs', 'mke2fs', 'mkswap', 'mkntfs', 'mkdosfs', 'shred', 'blkdiscard', 'badblocks', 'zero'].map(
    (name): [string, Rule] => [name, name === 'badblocks' ? (call) => (has(call, 'w') ? onDisk(call) : null) : onDisk],
  ),
  ['wipefs', (call) => (has(call, 'a', 'o', '--all', '--offset') && !has(call, 'n', '--no-act') ? onDisk(call) : null)],
  [
    'hdparm',
    withAny(
      '--security-erase',
      '--security-erase-enhanced',
      '--trim-sector-ranges',
      '--write-sector',
      '--make-bad-sector',
      '--fwdownload',
      '--dco-restore',
    ),
  ],
  ['nvme', firstOf('format', 'sanitize', 'write-zeroes', 'write-uncor', 'delete-ns', 'dsm')],
  ['sgdisk', withAny('-Z', '-z', '-o', '--zap-all', '--zap', '--clear', '--mbrtogpt')],
  ['sfdisk', withAny('--delete', '--wipe')],
  ['parted', (call) => call.texts.find((text) => /^(?:mklabel|mktable|rm|mkpart)$/.test(text)) ?? null],
  ['cryptsetup', firstOf('luksFormat', 'luksErase', 'erase', 'luksKillSlot', 'reencrypt')],
  ['mdadm', withAny('--zero-superblock')],
  ['pvremove', onDisk],
  ['vgremove', (call) => call.operands[0]?.text ?? null],
  ['zpool', firstOf('destroy', 'labelclear')],
  // Refuses `zfs destroy` of a file system; a name such as `data@monday` is a snapshot.
  [
    'zfs',
    (call) =>
      call.operands[0]?.text === 'destroy' && !call.texts.some((text) => text.includes('@')) ? 'destroy' : null,
  ],
  [
    'dd',
    (call) => {
      const out = call.words.find((word) => word.text.startsWith('of='))
      return out ? written(call, [{ ...out, text: out.text.slice(3) }]) : null
    },
  ],
  ['rm', remove],
  ['unlink', (call) => systemFile(call, call.operands)],
  ['srm', remove],
  ['chmod', changeTree],
  ['chown', changeTree],
  ['chgrp', changeTree],
  ['chattr', changeTree],
  ['setfacl', changeTree],
  ['find', find],
  [
    'mv',
    (call) =>
      tree(call.operands.slice(0, call.letters.has('t') ? undefined : -1), call.directories, false) ?? copy(call),
  ],
  ['cp', copy],
  ['install', copy],
  ['ln', copy],
  [
    'rsync',
    (call) =>
      [...call.longs].some((name) => /^--(?:delete|del|remove)/.test(name))
        ? tree(call.operands.slice(-1), call.directories, false)
        : null,
  ],
  ['tar', (call) => (has(call, '--remove-files') ? tree(call.operands, call.directories, false) : null)],
  [
    'tee',
    (call) =>
      has(call, 'a', '--append')
        ? (disk(call, call.operands) ??
          call.operands.find((word) => leadsTo(word, kernelSwitches, call.directories))?.text ??
          null)
        : written(call, call.operands),
  ],
  ['truncate', (call) => written(call, call.operands)],
  ['userdel', (call) => (call.texts.at(-1) === 'root' ? 'root' : null)],
  ['deluser', (call) => (call.operands[0]?.text === 'root' ? 'root' : null)],
  ['kill', kill],
  ['killall', (call) => call.operands.find((word) => /^(?:init|systemd)$/.test(word.text))?.text ?? null],
  ['pkill', (call) => call.operands.find((word) => /^\^?(?:init|systemd)\$?$/.test(word.text))?.text ?? null],
])

/** Refuses a redirection that destroys: onto a disk, over a vital file, or into a kernel switch. */
export function forbiddenRedirection(
  { operator, target }: Redirection,
  directories: readonly string[],
): Forbidden | null {
  if (operator === '<' || operator === '<&') return null
  const appends = operator === '>>' || operator === '&>>' || operator === '<>'
  const hit =
    leadsToDisk(target, directories) ||
    leadsTo(target, kernelSwitches, directories) ||
    (!appends && leadsTo(target, systemFiles, directories))
  return hit ? { reason: `${operator} ${target.text} is never run, even with an approval`, token: target.text } : null
}
