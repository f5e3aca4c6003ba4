import { createHash, createPrivateKey, createPublicKey, generateKeyPairSync, sign } from 'node:crypto'
import { createReadStream, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'

/** The files of a release: the archives, the install script and the bills of materials. */
const released = /^nightshift-.*\.(?:tar\.xz|cdx\.json)$|^install\.sh$/

/**
 * Writes `SHA256SUMS` over all files of the release in `dist`, in the format of `sha256sum`. With a
 * key also writes `SHA256SUMS.sig`: 64 bytes of Ed25519 for `openssl pkeyutl -verify -rawin`.
 * Without a key, throws if `dist` has the signature of an earlier build, because it would not
 * match.
 */
export async function writeSums(dist: string, key: string | null): Promise<void> {
  const names = readdirSync(dist)
    .filter((name) => released.test(name))
    .sort()
  const lines = await Promise.all(names.map(async (name) => `${await sha256Of(join(dist, name))}  ${name}\n`))
  const sums = Buffer.from(lines.join(''))
  const signature = join(dist, 'SHA256SUMS.sig')
  if (key === null && existsSync(signature))
    throw new Error(
      `${signature} is of another build: remove it, or name the key with --key or NIGHTSHIFT_RELEASE_KEY.`,
    )
  writeFileSync(join(dist, 'SHA256SUMS'), sums)
  if (key !== null) writeFileSync(signature, sign(null, sums, createPrivateKey(key)))
}

async function sha256Of(file: string): Promise<string> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(file), hash)
  return hash.digest('hex')
}

/**
 * Reads the signing key in PEM: from the file, or else from the environment variable, which
 * contains the key or the path of its file. Null without a key.
 */
export function readKey(file: string | undefined, given: string | undefined): string | null {
  const pem = file
    ? readFileSync(file, 'utf8')
    : given?.startsWith('-----')
      ? given
      : given && readFileSync(given, 'utf8')
  if (!pem) return null
  if (createPrivateKey(pem).asymmetricKeyType !== 'ed25519')
    throw new Error('The key of a release is an Ed25519 key in PEM.')
  return pem
}

/** Returns the public half of the key in PEM, as `install.sh` contains it. */
export function publicKeyOf(key: string): string {
  return createPublicKey(key).export({ type: 'spki', format: 'pem' }).toString().trim()
}

/** Creates a key at `path`, readable only by its owner. Throws if the file exists. */
export function makeKey(path: string): string {
  const { privateKey } = generateKeyPairSync('ed25519')
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  writeFileSync(path, pem, { mode: 0o600, flag: 'wx' })
  return publicKeyOf(pem)
}
