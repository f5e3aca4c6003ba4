import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, copyFileSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, test } from '@jest/globals'
import { readMounts, shownAt } from '../../../mesh/agent/mounts.ts'
import { whyUnmet } from '../../../mesh/agent/preconditions.ts'
import { homeOf } from '../../../mesh/agent/programs.ts'
import { writableBelow, writersOf } from '../../../mesh/agent/root-read.ts'
import { temporaryDirectory } from '../../support/directory.ts'

// Everybody may write to the directory that it is in, so nothing in it is root's alone.
const place = temporaryDirectory()
afterAll(() => place.remove())
const file = join(place.path, 'file')
writeFileSync(file, 'x')

test('a path that others than root can change belongs to them, however it is reached', () => {
  expect(writersOf('/etc/passwd')).toBe('root')
  expect(writersOf('/usr/../etc/passwd')).toBe('root')
  expect(writersOf(file)).toBe('others')
  chmodSync(file, 0o600)
  expect(writersOf(file)).toBe('others')
  symlinkSync('/etc/passwd', join(place.path, 'to-root'))
  expect(writersOf(join(place.path, 'to-root'))).toBe('others')
  mkdirSync(join(place.path, 'directory'))
  expect(writersOf(join(place.path, 'directory/none'))).toBe('absent')
  symlinkSync(join(place.path, 'round'), join(place.path, 'round'))
  expect(writersOf(join(place.path, 'round'))).toBe('others')
  expect(writersOf('etc/passwd')).toBe('others')
})

test('a directory is root’s alone only with all that is in it', () => {
  expect(writableBelow('/etc/passwd')).toBeNull()
  expect(writableBelow('/etc/none')).toBeNull()
  expect(writableBelow(join(place.path, 'directory'))).toBe(join(place.path, 'directory'))
  expect(writableBelow('/usr/include/linux') ?? '').toBe('')
  // Links lead out of it, and where they lead counts.
  expect(writableBelow('/tmp')).toBe('/tmp')
})

test('a condition over files names the file that is obeyed, also from above', async () => {
  const below = join(place.path, 'directory')
  const ask = (files: string[], up?: true) =>
    whyUnmet(
      {
        conditions: [{ kind: 'root_only', program: 'x', files, directories: ['directory'], ...(up && { up }) }],
        sees: [],
        environment: {},
        cwd: place.path,
        rootRead: null,
      },
      { canShow: () => true },
      { run: () => Promise.reject(new Error('nothing is run for that')) },
    )
  expect(await ask(['file'])).toBeNull()
  expect(await ask(['file'], true)).toBe(
    `x: the program reads settings from ${file}, which users other than root may write`,
  )
  expect(await ask([file])).toContain(file)
  expect(await ask(['../file'])).toContain(file)
  expect(await ask([`~/${'../'.repeat(9)}${file.slice(1)}`])).toContain('x: the program reads settings')
  expect(homeOf()).toMatch(/^\//)
  expect(below).not.toBe(file)
})

test('a process that is named to a debugger of Java is looked at: the signal ends any other', async () => {
  const ask = (process: string) =>
    whyUnmet(
      {
        conditions: [{ kind: 'java', program: 'jstack', process, directories: [] }],
        ...{ sees: [], environment: {}, cwd: '/', rootRead: null },
      },
      { canShow: () => true },
      { run: () => Promise.reject(new Error('nothing is run for that')) },
    )
  const java = join(place.path, 'java')
  copyFileSync('/bin/sleep', java)
  const child = spawn(java, ['60'])
  try {
    await once(child, 'spawn')
    expect(await ask(String(child.pid))).toBeNull()
    expect(await ask(String(process.pid))).toBe(
      `jstack: process ${process.pid} is node, which the signal of the command would end`,
    )
    expect(await ask('4194305')).toBe('jstack: the program of process 4194305 cannot be read')
  } finally {
    child.kill('SIGKILL')
  }
})

test('if the sandbox cannot show what a command reads, the command needs an approval', async () => {
  const rests = { conditions: [], sees: ['mounts'], environment: {}, cwd: '/', rootRead: null } as const
  const run = () => Promise.reject(new Error('nothing is run for that'))
  expect(await whyUnmet(rests, { canShow: () => false }, { run })).toContain('cannot show the real mounts')
})

test('a hidden path is hidden under every path that the mount table has for it', () => {
  const [device, root] = ['254:0', '/']
  const line = (target: string, from: string, on = device) => `30 1 ${on} ${from} ${target} rw - ext4 /dev/x rw`
  const mountinfo = [line('/', root), line(`${place.path}/directory`, '/other'), line('/proc', '/', '0:5')].join('\n')
  expect(shownAt(file, readMounts(mountinfo))).toEqual([file])
  // The same tree once more, at a place whose name has a blank in it.
  const again = join(place.path, 'once more')
  symlinkSync(place.path, again)
  const twice = `${mountinfo}\n${line(`${place.path}/once\\040more`, place.path)}`
  expect(shownAt(file, readMounts(twice))).toEqual([file, join(again, 'file')])
  expect(shownAt(join(place.path, 'none'), readMounts(mountinfo))).toEqual([])
})
