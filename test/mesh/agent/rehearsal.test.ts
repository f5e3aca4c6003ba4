import { chmodSync, existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { parseRehearsal } from '../../../domain/format-approval.ts'
import type { Capability } from '../../../domain/mesh.ts'
import { temporaryDirectory } from '../../support/directory.ts'
import { aManifest, keys, type Running, startAgent } from '../../support/running-agent.ts'

const own = keys()
const uid = process.getuid?.() === 0 ? 65_534 : undefined
let place: ReturnType<typeof temporaryDirectory>
let agent: Running

beforeAll(async () => {
  place = temporaryDirectory()
  chmodSync(place.path, 0o777)
  const manifest = aManifest(own, { roots: [{ path: tmpdir(), writable: true }] })
  agent = await startAgent(own, { manifest, ...(uid !== undefined && { uid }) })
})
afterAll(async () => {
  await agent.stop()
  place.remove()
})

async function rehearsal(capability: Capability, args: Record<string, unknown>) {
  const { answer } = await agent.call(capability, args, { rehearse: true })
  if (!answer.ok) throw new Error(JSON.stringify(answer.error))
  const { lines, untried } = parseRehearsal({ rehearsal: answer.result }) ?? { lines: [], untried: [] }
  return {
    lines,
    said: lines.join('\n'),
    untried: untried.join('\n'),
    tried: answer.result?.tried,
    rests: answer.result?.rests_on,
  }
}
const ofArgv = (...argv: string[]) => rehearsal('shell.exec', { argv })
const ofText = (text: string, cwd?: string) => rehearsal('shell.eval', { text, ...(cwd && { cwd }) })

function tree(name: string, files: Record<string, string>): string {
  const at = join(place.path, name)
  mkdirSync(at, { recursive: true })
  for (const [file, text] of Object.entries(files)) writeFileSync(join(at, file), text)
  return at
}

describe('before a command that writes, the card shows', () => {
  test('what a removal would remove, how many and how large, and nothing is removed', async () => {
    const at = tree('old', { 'a.txt': '12345', 'b.txt': '1' })
    const { lines, said, tried } = await ofArgv('rm', '-rf', at)
    expect(said).toContain('would be removed: 2 files, 1 directories, 6 bytes')
    expect(lines).toContain(`  ${at}/a.txt (5 bytes)`)
    expect(tried).toBe(true)
    expect(existsSync(join(at, 'a.txt'))).toBe(true)
  })

  test("the program's file, its user and folder, and the paths that it names", async () => {
    const at = tree('named', { 'app.conf': 'x' })
    const { said, untried, tried } = await ofArgv('chmod', '600', join(at, 'app.conf'), join(at, 'none.conf'))
    expect(said).toMatch(/^program chmod: \/usr\/bin\/chmod, of root, sha256 [0-9a-f]{16}…$/m)
    expect(said).toMatch(/^runs as user \d+ .* in \/$/m)
    expect(said).toMatch(/app\.conf: file of 1 bytes, .*, mode \d+, changed \d{4}-/)
    expect(said).toContain('none.conf: does not exist, or the agent may not see it')
    expect(untried).toContain('chmod was not tried: no way is known to try chmod without changes.')
    expect(tried).toBe(false)
  })

  test('a failed rehearsal, so that the question is still asked', async () => {
    const { untried } = await rehearsal('shell.exec', { argv: ['find', '.', '-delete'], cwd: '/no/such/place' })
    expect(untried).toContain('find was not tried: /no/such/place is not a directory')
  })

  test('no trial of a command that only reads, even if it needs an approval', async () => {
    expect((await ofArgv('cat', join(tree('asked', { id_rsa: 'x' }), 'id_rsa'))).untried).toBe('')
  })

  test('a missing program', async () => {
    expect((await ofArgv('no-such-program-here')).said).toContain('program no-such-program-here: does not exist')
  })

  test('each command of a text by itself, and the parts that were not tried', async () => {
    const at = tree('text', { 'a.log': '1' })
    const { said, untried } = await ofText(`rm -f ${at}/a.log; for x in 1 2; do touch $x; done; rm $HOME/y > ${at}/out`)
    expect(said).toContain('would be removed: 1 files, 0 directories, 1 bytes')
    expect(untried).toContain('Commands in loops, groups, functions and substitutions were not tried.')
    expect(untried).toContain('the value of $HOME/y is known only when it runs')
  })

  test('that all was tried only if all of it was', async () => {
    const at = tree('whole', { a: '1', b: '2' })
    expect((await ofText(`rm ${at}/a; rm ${at}/b`)).tried).toBe(true)
    for (const more of [
      'PATH=/x',
      'export PATH=/x',
      'rm() { make; }',
      'PATH=/x rm y',
      `rm ${at}/b > $X`,
      'make all',
      'eval "rm x"',
      'command rm x',
      'sudo rm x',
      `echo x > ${at}/c`,
      'if true; then rm x; fi',
    ]) {
      const { tried, untried } = await ofText(`rm ${at}/a; ${more}`)
      expect([more, tried]).toEqual([more, false])
      expect(untried).toMatch(/(?:was|were) (?:not )?tried/)
    }
  })

  test('nothing of relative names if the text changes the folder', async () => {
    const at = tree('moved', { f: '1' })
    const { said, untried } = await ofText('cd / && rm f', at)
    expect(said).not.toContain('would be removed: 1')
    expect(untried).toContain('rm was not tried: the text may change the directory of the command.')
  })

  test("nothing of secret files, and nothing of the agent's files", async () => {
    const at = tree('secret', { id_rsa: 'x' })
    const { said, untried } = await ofArgv('rm', '-f', `${at}/id_rsa`)
    expect(said).toContain('id_rsa: not checked, the file counts as a secret')
    expect(untried).toContain('rm was not tried')
    symlinkSync(`${at}/id_rsa`, `${at}/innocent`)
    expect((await ofArgv('chmod', '600', `${at}/innocent`)).said).toContain('innocent: not checked')
    const agents = await ofArgv('rm', '-rf', agent.state)
    expect(agents.said + agents.untried).not.toContain('journal')
    expect(agents.said).not.toContain('would be removed: 1')
  })

  test.each([
    ['make', 'deploy'],
    ['terraform', 'apply'],
    ['ansible-playbook', 'site.yml'],
    ['rsync', '-a', '-e', 'sh -c id', '/srv/a', '/srv/b'],
    ['rsync', '-a', 'host:/a', '/b'],
    ['apt-get', '-o', 'APT::Update::Pre-Invoke::=id', 'install', 'nginx'],
  ])('that %s could not be tried, and never that nothing would change', async (...argv) => {
    const { said, untried, tried } = await ofArgv(...argv)
    expect(untried).toContain(`${argv[0]} was not tried: `)
    expect(said).not.toMatch(/would (?:go|change)/)
    expect(tried).toBe(false)
  })
})

describe('the decision rests on what was shown', () => {
  test('another file under the name is another state, and a log that grew is not', async () => {
    const at = tree('state', { 'app.conf': 'x', 'app.log': 'x' })
    const first = (await ofArgv('truncate', '-s', '0', `${at}/app.log`)).rests
    writeFileSync(join(at, 'app.log'), 'x and more')
    expect((await ofArgv('truncate', '-s', '0', `${at}/app.log`)).rests).toBe(first)
    const before = (await ofArgv('truncate', '-s', '0', `${at}/app.conf`)).rests
    writeFileSync(join(at, 'app.conf'), 'another')
    expect((await ofArgv('truncate', '-s', '0', `${at}/app.conf`)).rests).not.toBe(before)
  })

  test('one more file to remove is another state', async () => {
    const at = tree('grows', { a: '1' })
    const before = (await ofArgv('rm', '-r', at)).rests
    expect((await ofArgv('rm', '-r', at)).rests).toBe(before)
    writeFileSync(join(at, 'b'), '2')
    expect((await ofArgv('rm', '-r', at)).rests).not.toBe(before)
  })
})
