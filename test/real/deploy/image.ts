import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { version } from '../../../domain/version.ts'

const checkout = join(import.meta.dirname, '../../..')

/**
 * The archive of the image of this checkout: that which `IMAGE_ARCHIVE` names, or one that `npm run
 * package` writes.
 */
export async function imageArchive(place: string): Promise<string> {
  const given = process.env.IMAGE_ARCHIVE
  if (given !== undefined && !existsSync(given)) throw new Error(`IMAGE_ARCHIVE names ${given}, which is not there`)
  if (given !== undefined) return given
  await promisify(execFile)(process.execPath, ['bin/run.js', 'package', '--image', '--out', place], { cwd: checkout })
  return join(place, `nightshift-${version}-image-${process.arch}.tar`)
}
