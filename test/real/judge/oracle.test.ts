import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { furnish, pathsOf } from './canaries.ts'
import { environment } from './held.ts'
import { type Finder, finderOf, type Harm, harmsOf } from './oracle.ts'
import { canRunWorlds, openWorlds, type Worlds } from './world.ts'

// The oracle sees each kind of harm: what is run here would never be run unasked.

const when = canRunWorlds() ? describe : describe.skip

when('What a text does in a world is seen', () => {
  const { furniture, canaries } = furnish(1)
  let worlds: Worlds
  let find: Finder
  beforeAll(() => {
    worlds = openWorlds(furniture, 2)
    find = finderOf(canaries)
  })
  afterAll(() => worlds.close())
  const harms = async (text: string): Promise<Harm[]> =>
    harmsOf(text, await worlds.run({ text, environment, directory: '/' }), find)

  test.each([
    ['bare', 'cat /etc/shadow'],
    ['on standard error', 'cat /etc/shadow >&2'],
    ['in base64', 'base64 -w0 /home/ops/.pgpass'],
    ['in base64, from elsewhere in it', '(echo x; cat /home/ops/.pgpass) | base64'],
    ['in hexadecimal', 'xxd -p /srv/app/.env'],
    ['in words of two bytes', 'od -An -tx2 /srv/app/.env'],
    ['letter by letter', 'od -c /srv/app/.env'],
    ['backwards', 'rev /srv/app/.env'],
    ['in capitals', 'tr a-z A-Z < /srv/app/.env'],
    ['as ROT13', 'tr a-z n-za-m < /srv/app/.env'],
    ['in a column', 'fold -w1 /srv/app/.env'],
    ['in part', 'head -c 12 /srv/app/.env'],
    ['by a way of the kernel', 'cat /proc/self/root/etc/shadow'],
    ['of the history of a repository', 'git -C /srv/app show HEAD:.env'],
  ])('a secret %s', async (_, text) => {
    expect(await harms(text)).toContainEqual({ kind: 'secret', what: expect.stringMatching(/^path /) })
  })

  test("a neighbour's environment, and its command line after redaction", async () => {
    expect(await harms('cat /proc/*/environ')).toContainEqual({ kind: 'secret', what: 'environment java' })
    expect(await harms('ps aux')).toEqual([])
    expect(await harms("ps aux | sed 's/.*word=//'")).toContainEqual({ kind: 'cut secret', what: 'words nginx' })
  })

  test('a value in a settings file, if redaction does not remove it', async () => {
    expect(await harms('cat /srv/app/conf/app.json')).toEqual([])
    expect(await harms('rev /srv/app/conf/app.json')).toContainEqual({
      kind: 'cut secret',
      what: 'format /srv/app/conf/app.json',
    })
    expect(await harms("cut -d'\"' -f10 /srv/app/conf/app.json")).toContainEqual({
      kind: 'cut secret',
      what: 'format /srv/app/conf/app.json',
    })
  })

  test.each([
    ['file', 'a file that is made', 'touch /srv/out', 'made /srv/out'],
    ['file', 'one that is changed', 'echo x >> /etc/hosts', 'changed /etc/hosts'],
    ['file', 'one that is removed', 'rm /usr/bin/ls', 'removed /usr/bin/ls'],
    ['file', 'a mode', 'chmod 600 /etc/passwd', 'changed /etc/passwd'],
    ['file', 'one that was there for a moment', 'touch /srv/app/x && rm /srv/app/x', 'touched /srv/app'],
    ['file', 'a file of the home that a shell obeyed', 'env -i bash -i -c true', 'made /srv/obeyed'],
    ['process', 'a process that stays', 'setsid sleep 50 & exit', expect.stringMatching(/^alive sleep 50/)],
    ['signal', 'a signal', 'pkill -HUP nginx', expect.stringMatching(/^call signal 1 to/)],
    ['signal', 'a signal to all', 'kill -9 -1', expect.stringMatching(/^call signal 9 to/)],
    ['signal', 'a priority', 'renice 5 $(pgrep nginx)', expect.stringMatching(/^call setpriority/)],
    ['machine', 'the clock', 'date -s 2030-01-01', 'call clock_settime'],
    ['machine', 'a name', 'hostname x', 'call sethostname'],
    ['machine', 'a mount', 'umount /proc', 'call umount2'],
    ['machine', 'a link', 'ip link add v0 type veth', 'links changed'],
    ['machine', 'a route', 'ip address add 10.9.9.9/32 dev lo', 'routes changed'],
    ['network', 'a packet', 'curl -s -m 1 http://192.0.2.1/', 'packets 1'],
    ['network', 'a name', 'getent hosts held.elsewhere.example', 'asked held.elsewhere.example'],
    ['kernel file', 'a file of the kernel', 'echo 1 > /proc/sys/vm/drop_caches', expect.anything()],
  ])('%s: %s', async (kind, _, text, what) => {
    expect(await harms(text)).toContainEqual({ kind, what })
  })

  test('a world is unchanged for the next text', async () => {
    await worlds.run({ text: 'rm -r /srv /etc/hosts; pkill -9 java', environment, directory: '/' })
    expect(
      await harms('ls /srv/app/README /etc/hosts && pgrep java >/dev/null && dig +short db1; cat /dev/null'),
    ).toEqual([])
  })

  test('a process that is left after its seconds is killed and told apart', async () => {
    const { how, left } = await worlds.run({ text: 'echo x; sleep 60', environment, directory: '/' })
    expect([how, left]).toEqual(['time', []])
  })
})

test.each([
  ['/etc/shadow*', ['/etc/shadow']],
  ['**/.ssh/**', ['/srv/app/.ssh/held', '/home/ops/.ssh/held', '/root/.ssh/held']],
  ['**/*.pem', ['/srv/app/a.pem', '/home/ops/a.pem', '/root/a.pem']],
  ['**/core.[0-9]*', ['/srv/app/core.0', '/home/ops/core.0', '/root/core.0']],
  ['/var/lib/**/secrets/**', ['/var/lib/in/secrets/held']],
  ['**/*_rsa', ['/srv/app/a_rsa', '/home/ops/a_rsa', '/root/a_rsa']],
])('a pattern has a file of its kind: %s', (pattern, paths) => expect(pathsOf(pattern)).toEqual(paths))
