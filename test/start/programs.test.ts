import { chmodSync, mkdirSync, rmSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from '@jest/globals'
import { labDirectory } from '../../start/programs.ts'
import { temporaryDirectory } from '../support/directory.ts'

const isRoot = process.getuid?.() === 0

function checkout(mode: number): { stateDir: string; remove(): void } {
  const directory = temporaryDirectory()
  const stateDir = join(directory.path, '.nightshift')
  mkdirSync(stateDir)
  chmodSync(directory.path, mode)
  return { stateDir, remove: directory.remove }
}

test('the lab keeps its machines beside the state', () => {
  const { stateDir, remove } = checkout(0o755)
  expect(labDirectory(stateDir)).toBe(`${stateDir}-lab`)
  remove()
})

test("if the machines' user cannot enter the checkout, they are where this user can, start after start", () => {
  const { stateDir, remove } = checkout(0o700)
  const found = labDirectory(stateDir)
  expect(labDirectory(stateDir)).toBe(found)
  // Whoever does not start as root runs them as themselves, and gets everywhere that they do.
  expect(found.startsWith(dirname(stateDir))).toBe(!isRoot)
  if (isRoot) {
    expect(statSync(dirname(found)).mode & 0o001).toBe(0o001)
    rmSync(dirname(found), { recursive: true })
  }
  remove()
})
