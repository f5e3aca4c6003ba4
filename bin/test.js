#!/usr/bin/env node
import { join } from 'node:path'
import { rootDir, runUnderNode24 } from './node24.js'

await runUnderNode24([join(rootDir, 'node_modules', 'jest', 'bin', 'jest.js'), ...process.argv.slice(2)], {
  cwd: rootDir,
})
