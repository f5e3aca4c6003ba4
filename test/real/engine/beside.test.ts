import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { type MountSpace, mountSpace } from '../../support/mount-space.ts'
import { aManifest, keys, type Running, startAgent } from '../../support/running-agent.ts'
import { note } from '../facts.ts'
import { whyNot } from '../kinds.ts'
import { image, type RealEngine, startEngine } from './docker-engine.ts'

const lacking = whyNot('engine')
/** The user of an agent without rights. */
const uid = 65_534
const rounds = 10

;(lacking ? describe.skip : describe)(`an agent beside a real engine${lacking ? ` (${lacking})` : ''}`, () => {
  let engine: RealEngine
  let space: MountSpace
  const own = keys()
  const run = (...words: string[]) =>
    engine.docker('run', '--pull', 'never', '--network', 'none', '--volume', '/srv', ...words)
  beforeAll(async () => {
    engine = await startEngine()
    for (const name of ['one', 'two']) run('--detach', '--name', name, image, '/bin/sleep', '86400')
    space = mountSpace(engine.pid)
  })
  afterAll(async () => {
    space?.stop()
    await engine?.stop()
  })
  const table = () => space.sh('cat /proc/self/mountinfo').split('\n')
  const closed = () => table().filter((line) => / - (?:overlay|nsfs) /.test(line)).length

  test.each(['bwrap', 'unshare'])('reads without approval by %s while containers run, come and go', async (kind) => {
    expect(closed()).toBeGreaterThanOrEqual(2)
    // In its own table of mounts there is no bubblewrap then.
    if (kind === 'unshare') space.sh('mount --bind /dev/null "$(command -v bwrap)"')
    const manifest = aManifest(own, { roots: [{ path: '/etc', writable: false }] })
    const agent: Running = await startAgent(own, { uid, manifest, behind: space.behind })
    try {
      const { sandbox, unavailable } = await agent.health()
      expect([sandbox, unavailable.sandbox]).toEqual([kind, undefined])
      const came: string[] = []
      for (let round = 0; round < rounds; round++) {
        const name = `${kind}-${round}`
        const reads = [
          agent.call('shell.exec', { argv: ['cat', '/proc/loadavg'] }),
          agent.call('shell.eval', { text: 'df -h / | tail -n 1; findmnt -n -o TARGET / | wc -l' }),
          agent.call('fs.stat', { path: '/etc/hostname' }),
        ]
        run('--detach', '--name', name, image, '/bin/sleep', '86400')
        reads.push(agent.call('shell.exec', { argv: ['uptime'] }))
        engine.docker('rm', '--force', name)
        reads.push(agent.call('shell.exec', { argv: ['free', '-m'] }))
        for (const each of reads) {
          const { answer } = await each
          came.push(answer.ok ? answer.approval_status : JSON.stringify(answer.error))
        }
      }
      expect(new Set(came)).toEqual(new Set(['auto_approved']))
      note(`reads by ${kind} beside ${rounds} containers that came and went, all unasked:`, came.length)
    } finally {
      await agent.stop()
      if (kind === 'unshare') space.sh('umount "$(command -v bwrap)"')
    }
  })

  test.each(['bwrap', 'unshare'])(
    'writes nothing in its sandbox by %s, in what an engine mounted or beside it',
    async (kind) => {
      space.sh('mkdir -m 1777 -p open; mountpoint -q open || mount -t tmpfs -o mode=1777 tmpfs open')
      const looker = space.looker(uid, kind)
      const merged = table().flatMap((line) => / (\/\S+\/merged) /.exec(line)?.[1] ?? [])
      expect(merged.length).toBeGreaterThanOrEqual(2)
      for (const place of [...merged, `${space.path}/open`, '/tmp', '/dev/shm/..']) {
        const { sandbox, exitCode, stderr } = await looker.look(`echo x > ${place}/nightshift-new`)
        expect([place, sandbox, exitCode]).toEqual([place, kind, 1])
        expect(stderr).toMatch(/Read-only file system|Permission denied/)
      }
      for (let round = 0; round < 5; round++) {
        const looks = [looker.look('echo read'), looker.look(`echo read; touch ${space.path}/open/new`)]
        run('--rm', image, '/bin/echo', 'x')
        for (const each of looks) expect(await each).toMatchObject({ sandbox: kind, stdout: 'read\n' })
      }
      expect(space.sh('ls open')).toBe('')
    },
  )
})
