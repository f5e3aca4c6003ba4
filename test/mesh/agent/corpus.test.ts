import { spawnSync } from 'node:child_process'
import { chownSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { judgeCommand } from '../../../safety/command/judge.ts'
import { loadSql } from '../../../safety/sql/inspect.ts'
import { temporaryDirectory } from '../../support/directory.ts'
import { aManifest, startAgent } from '../../support/running-agent.ts'
import { changes, commands, own, ownSecret, picture, ruled, stateOf, throwAwayRoot, unexplained } from './corpus.ts'

let place: ReturnType<typeof temporaryDirectory>
beforeAll(async () => {
  await loadSql()
  place = temporaryDirectory()
})
afterAll(() => place.remove())

test('the device classifies every command of the corpus like the kernel', () => {
  const different: string[] = []
  for (const text of commands) {
    const { verdict, code } = judgeCommand(text, { knownHosts: new Set(), directory: '/' })
    const ruling = ruled(text)
    const word = ruling.ok ? 'run' : ruling.code === 'approval_required' ? 'ask' : 'refuse'
    // An endless read is not asked about: nobody could wait for it.
    const expected = code === 'UNBOUNDED' ? 'refuse' : verdict
    if (word !== expected) different.push(`${text}: ${verdict} (${code}), on the device ${word}`)
  }
  expect(different).toEqual([])
})

const enter = `set -e
root=$1; shift
for name in usr bin sbin lib lib32 lib64; do
  if [ -d "/$name" ] && [ ! -L "/$name" ]; then mount --rbind "/$name" "$root/$name"; mount -o remount,bind,ro "$root/$name"; fi
done
mount --rbind /proc "$root/proc"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for device in null zero full random urandom; do : > "$root/dev/$device"; mount --bind "/dev/$device" "$root/dev/$device"; done
exec chroot "$root" setpriv --no-new-privs --bounding-set=-all --inh-caps=-all --ambient-caps=-all -- "$@"`

// Several at a time: some wait for what never comes until their two seconds have passed.
const play = `xargs -0 -n 1 -P 6 bash -c 'timeout -k 1 2 bash --noprofile --norc -c "$0" < /dev/null > /dev/null 2>&1; echo $?'`

/** Runs each text in there and answers their exit codes, in no order. */
function runIn(root: string, uid: number, texts: readonly string[]): number[] {
  const asUser =
    process.getuid?.() === 0 ? ['--reuid', String(uid), '--regid', String(uid), '--clear-groups', '--'] : ['--']
  const { stdout, stderr, status } = spawnSync(
    'setpriv',
    [
      ...asUser,
      'unshare',
      '--user',
      '--map-root-user',
      '--mount',
      '--pid',
      '--fork',
      '--kill-child',
      '--net',
      '--ipc',
      '--uts',
      '--',
      '/bin/sh',
      '-c',
      enter,
      'sh',
      root,
      '/bin/bash',
      '--noprofile',
      '--norc',
      '-c',
      play,
    ],
    {
      input: `${texts.join('\0')}\0`,
      encoding: 'utf8',
      cwd: '/',
      maxBuffer: 10_000_000,
      env: { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', LANG: 'C.UTF-8', HOME: '/home/ops' },
    },
  )
  expect([status, stderr]).toEqual([0, ''])
  return stdout.trim().split('\n').map(Number)
}

/**
 * What npm, top and terraform keep of themselves in a home that they may write, and the folders
 * that LVM makes for its locks and settings where there are none (lvm(8)). In the sandbox they may
 * not: see below.
 */
const ownTraces =
  /^(?:home\/ops(?:$|\/\.(?:npm|config|terraform\.d)(?:$|\/))|etc(?:$|\/lvm$)|run(?:$|\/lock$|\/lock\/lvm(?:$|\/)))/

test('commands of the corpus that run without approval change nothing, even where they could change everything', () => {
  const uid = 65_534
  const root = throwAwayRoot(uid, join(place.path, 'root'))
  const approved = commands.filter((text) => ruled(text).ok)
  expect(approved.length).toBeGreaterThan(500)
  const before = picture(root)
  const codes = runIn(root, uid, approved)
  expect(codes.length).toBe(approved.length)
  // Most of them have found their program and something to look at.
  expect(codes.filter((code) => code === 0).length).toBeGreaterThan(200)
  expect(changes(before, picture(root)).filter((path) => !ownTraces.test(path))).toEqual([])
  // A write would have been seen.
  runIn(root, uid, ['echo more >> /var/log/syslog', 'touch /srv/new'])
  expect(changes(before, picture(root)).filter((path) => !ownTraces.test(path))).toEqual([
    'srv',
    'srv/new',
    'var/log/syslog',
  ])
}, 900_000)

test('the same commands change nothing at all through an agent without rights', async () => {
  const asRoot = process.getuid?.() === 0
  const agent = await startAgent(own, {
    ...(asRoot && { uid: 65_534 }),
    manifest: aManifest(own, { limits: { timeout_seconds: 3 } }),
  })
  const root = throwAwayRoot(65_534, join(place.path, 'confined'))
  const refresh = join(agent.state, 'refresh.json')
  writeFileSync(refresh, `{"token":"${ownSecret}"}`)
  if (asRoot) chownSync(refresh, 65_534, 65_534)
  try {
    const stateBefore = stateOf(agent.state)
    const answered = new Set<string>()
    const leaked: string[] = []
    const before = picture(root)
    // Each starts in a sandbox of its own, which takes longer than the command: of our own corpus
    // every third here, all in test/long; of others all.
    const waiting = commands.filter((text, n) => ruled(text).ok && (process.env.COMMANDS || n % 3 === 0))
    const said = new Map<string, number>()
    const lane = async () => {
      for (let text = waiting.pop(); text !== undefined; text = waiting.pop()) {
        const { answer } = await agent.call('shell.eval', { text, cwd: root })
        answered.add(`${answer.request_id} ${answer.audit_hash}`)
        if (JSON.stringify(answer).includes(ownSecret)) leaked.push(text)
        const word = answer.ok ? answer.approval_status : (answer.error?.code ?? '')
        said.set(word, (said.get(word) ?? 0) + 1)
      }
    }
    await Promise.all([lane(), lane(), lane(), lane()])
    expect(said.get('auto_approved')).toBeGreaterThan(200)
    // Some take longer than three seconds, and a relative path may be more than a read in here.
    expect(
      [...said.keys()].filter((word) => !['auto_approved', 'timeout', 'approval_required'].includes(word)),
    ).toEqual([])
    expect(changes(before, picture(root))).toEqual([])
    // The agent's own is neither shown nor touched, and its journal is what it wrote itself.
    expect(leaked).toEqual([])
    expect(changes(stateBefore, stateOf(agent.state))).toEqual([])
    expect(unexplained(agent.state, answered)).toEqual([])
  } finally {
    await agent.stop()
  }
}, 900_000)
