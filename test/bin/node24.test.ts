import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { whyInstall } from '../../bin/node24.js'
import { temporaryDirectory } from '../support/directory.ts'

let directory: ReturnType<typeof temporaryDirectory>

beforeEach(() => {
  directory = temporaryDirectory()
  mkdirSync(join(directory.path, 'node_modules'))
})

afterEach(() => directory.remove())

const wanted = {
  '': { version: '0.1.0' },
  'node_modules/pump': { version: '1.0.0' },
  'node_modules/for-another-platform': { version: '1.0.0', optional: true },
}

/** A lockfile that is newer than what is installed. */
function checkout(lock: object, installed?: object): string {
  writeFileSync(join(directory.path, 'package-lock.json'), JSON.stringify({ packages: lock }))
  if (installed) {
    const file = join(directory.path, 'node_modules', '.package-lock.json')
    writeFileSync(file, JSON.stringify({ packages: installed }))
    utimesSync(file, new Date(0), new Date(0))
  }
  return directory.path
}

test('a fresh clone is installed', () => {
  expect(whyInstall(checkout(wanted))).toBe('nothing is installed yet')
})

test('a lockfile that asks for another version is installed', () => {
  expect(whyInstall(checkout(wanted, { 'node_modules/pump': { version: '0.9.0' } }))).toBe(
    'package-lock.json asks for pump 1.0.0, which is not installed',
  )
})

test('a newer lockfile that asks for the installed versions installs nothing', () => {
  expect(whyInstall(checkout(wanted, { 'node_modules/pump': { version: '1.0.0' } }))).toBeUndefined()
})

test('an installed package prints how to run it, and installs nothing below it', () => {
  const root = join(directory.path, 'node_modules', 'nightshift')
  cpSync('bin', join(root, 'bin'), { recursive: true })
  writeFileSync(join(root, 'package.json'), '{"type":"module"}')
  const { status, stderr } = spawnSync(process.execPath, [join(root, 'bin', 'nightshift.js'), 'doctor'], {
    encoding: 'utf8',
  })
  expect([status, stderr]).toEqual([1, expect.stringContaining('ln -s /opt/nightshift/bin/nightshift.js')])
})
