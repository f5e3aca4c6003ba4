import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { readMounts, writableIn } from '../../../mesh/agent/mounts.ts'
import { find } from '../../../mesh/agent/programs.ts'
import { type Looked, type Looker, type MountSpace, mountSpace } from '../../support/mount-space.ts'
import { keys, type Running, startAgent } from '../../support/running-agent.ts'

/** The user of an agent without rights. */
const uid = 65_534
const isRoot = process.getuid?.() === 0
const isInstalled = (program: string) => find(program) !== null

test('of stacked mounts the last counts, and a covered, read-only or namespace mount does not', () => {
  const table = [
    '20 1 8:1 / / rw,relatime - ext4 /dev/sda rw',
    '21 20 8:2 / /data ro,relatime - ext4 /dev/sdb rw',
    '22 20 0:4 net:[4026531840] /run/netns/a rw - nsfs nsfs rw',
    '23 20 0:30 / /twice rw - tmpfs tmpfs rw',
    '24 23 0:31 / /twice ro - tmpfs tmpfs rw',
    '25 20 0:32 / /over/below rw - tmpfs tmpfs rw',
    '26 20 0:33 / /over ro - tmpfs tmpfs rw',
    '27 25 0:34 / /over/below/deeper rw - tmpfs tmpfs rw',
    '28 20 0:35 / /over2 rw - tmpfs tmpfs rw',
    '29 20 0:36 / / ro - tmpfs tmpfs rw',
  ]
  expect(writableIn(readMounts(table.join('\n'))).map(({ target }) => target)).toEqual(['/', '/over2'])
})

/**
 * Beside containers: what an engine mounts below directories that only root may enter, and
 * namespaces of networks.
 */
const asAnEngine = `
mkdir -m 711 engine
for closed in engine/data engine/netns user; do mkdir -m 700 $closed; done
mkdir -m 1777 open
mount -t tmpfs -o mode=1777 tmpfs open
mkdir engine/data/merged netns
mount -t tmpfs -o mode=1777 tmpfs engine/data/merged
touch engine/netns/default netns/reached
mount --bind /proc/self/ns/net engine/netns/default
mount --bind /proc/self/ns/net netns/reached
mkdir -p user/gvfs covered/below
mount -t tmpfs -o mode=1777 tmpfs user/gvfs
mount -t tmpfs -o mode=1777 tmpfs covered/below
mount -t tmpfs tmpfs covered`

const places = ['open', 'engine/data/merged', 'user/gvfs', 'covered/below', 'covered']
;(isRoot ? describe : describe.skip)(
  `beside mounts that its user cannot enter${isRoot ? '' : ' (it needs root)'}`,
  () => {
    let space: MountSpace
    beforeAll(() => {
      space = mountSpace()
      space.sh(asAnEngine)
    })
    afterAll(() => space?.stop())

    describe('an agent', () => {
      const own = keys()
      let agent: Running
      beforeAll(async () => {
        agent = await startAgent(own, { uid, behind: space.behind })
      })
      afterAll(() => agent?.stop())
      const read = async () => (await agent.call('shell.exec', { argv: ['cat', '/proc/loadavg'] })).answer

      test('starts, confines its reads, and lacks nothing', async () => {
        const { sandbox, unavailable } = await agent.health()
        expect(['bwrap', 'unshare']).toContain(sandbox)
        expect(unavailable).not.toHaveProperty('sandbox')
        expect(await read()).toMatchObject({ ok: true, approval_status: 'auto_approved' })
      })

      test('keeps reading without approval when a container starts and when it ends', async () => {
        space.sh('mkdir engine/data/another; mount -t tmpfs tmpfs engine/data/another; touch engine/netns/another')
        space.sh('mount --bind /proc/self/ns/net engine/netns/another')
        expect(await read()).toMatchObject({ ok: true, approval_status: 'auto_approved' })
        space.sh('umount engine/netns/another engine/data/another; rm -r engine/netns/another engine/data/another')
        expect(await read()).toMatchObject({ ok: true, approval_status: 'auto_approved' })
      })

      test('names the tool that shows the real owners of a listing whose owners its sandbox hides', async () => {
        const listed = async (argv: string[]) => (await agent.call('shell.exec', { argv })).answer.result
        expect(await listed(['stat', '-c', '%u', '/etc/passwd'])).toMatchObject({
          stdout: '65534\n',
          owners: expect.stringContaining('fs_stat'),
        })
        // That is what the file says, whoever reads it.
        expect(await listed(['grep', '65534', '/etc/passwd'])).not.toHaveProperty('owners')
      })
    })

    describe.each(['bwrap', 'unshare'].filter(isInstalled))('a read by %s', (kind) => {
      let looker: Looker
      beforeAll(() => {
        looker = space.looker(uid, kind)
      })
      const written = async (place: string): Promise<Looked> => await looker.look(`echo x > ${space.path}/${place}/new`)

      test.each(places)('writes nothing in %s', async (place) => {
        const { sandbox, exitCode, stderr } = await written(place)
        expect([sandbox, exitCode]).toEqual([kind, 1])
        expect(stderr).toMatch(/Read-only file system|Permission denied|No such file/)
      })

      test('writes nothing in a closed directory that is opened later', async () => {
        space.sh('chmod 755 engine/data')
        expect(await written('engine/data/merged')).toMatchObject({
          exitCode: 1,
          stderr: expect.stringContaining('Read-only file system'),
        })
        space.sh('chmod 700 engine/data')
      })

      test('runs while mounts come and go', async () => {
        const churn = 'mkdir -p churn/$n; mount -t tmpfs -o mode=1777 t churn/$n; umount churn/$n; rmdir churn/$n'
        const looks = Array.from({ length: 6 }, () => looker.look('echo read; touch open/new'))
        for (let round = 0; round < 3; round++) space.sh(`for n in {1..15}; do ${churn}; done`)
        for (const each of looks) expect(await each).toMatchObject({ sandbox: kind, stdout: 'read\n', exitCode: 1 })
      })

      // Bubblewrap reads such a name.
      if (kind === 'bwrap') return
      test('asks while a mount cannot be made read-only, and runs again once the mount is gone', async () => {
        const odd = "$'odd\\n'"
        space.sh(`mkdir ${odd}; mount -t tmpfs -o mode=1777 tmpfs ${odd}`)
        const { error } = await looker.look('echo read')
        expect(error).toMatch(
          /^The call needs a grant now: the sandbox was lost \(.*\(tmpfs\) cannot be made read-only/s,
        )
        space.sh(`umount ${odd}`)
        expect((await looker.heard()).said).toBe('reads are confined by unshare')
        expect(await looker.look('echo read')).toMatchObject({ sandbox: 'unshare', stdout: 'read\n', lack: null })
      })
    })
  },
)
