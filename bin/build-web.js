#!/usr/bin/env node
import { join } from 'node:path'
import { rootDir, runUnderNode24 } from './node24.js'

await runUnderNode24([join(rootDir, 'start', 'build-web.ts')], { cwd: rootDir })
