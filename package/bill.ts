import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** A third-party part of the archive. */
type BillEntry = {
  name: string
  version: string
  /**
   * The licence that the manifest of the part states, for example `MIT` or `(MIT AND Zlib)`. Null
   * if the manifest states no licence.
   */
  licence: string | null
  /** The texts of the package's licence files. */
  texts: string[]
  purl: string
  /** The SHA-512 of the npm package, in hexadecimal digits. */
  sha512?: string
}

/** Lists the npm packages that contain these files, each once, sorted by name. */
export function partsOf(root: string, files: readonly string[]): BillEntry[] {
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')).packages as Record<string, Locked>
  const folders = new Set(files.map(packageFolder))
  const parts = [...folders].map((folder) => partIn(folder, lock[folder.slice(root.length).replace(/^\//, '')]))
  return unique(parts)
}

type Locked = { integrity?: string; license?: string }

function partIn(folder: string, locked: Locked | undefined): BillEntry {
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const { name, version } = manifest as { name: string; version: string }
  const said = manifest.license ?? manifest.licenses?.[0] ?? locked?.license ?? null
  const digest = /^sha512-(.+)$/.exec(locked?.integrity ?? '')?.[1]
  return {
    name,
    version,
    licence: typeof said === 'string' ? said : (said?.type ?? null),
    texts: licenceTexts(folder),
    purl: `pkg:npm/${name.replace('@', '%40')}@${version}`,
    ...(digest && { sha512: Buffer.from(digest, 'base64').toString('hex') }),
  }
}

/** Returns the folder of the package that contains a file: `/…/node_modules/@scope/name`. */
function packageFolder(file: string): string {
  const at = file.lastIndexOf('/node_modules/') + '/node_modules/'.length
  const words = file.slice(at).split('/')
  return file.slice(0, at) + words.slice(0, words[0]?.startsWith('@') ? 2 : 1).join('/')
}

function licenceTexts(folder: string): string[] {
  return readdirSync(folder)
    .filter(
      (name) => /^(?:licen[cs]e|copying|notice|third[-_]?party)/i.test(name) && !/\.(?:[cm]?js|ts|json)$/.test(name),
    )
    .sort()
    .flatMap((name) => readText(join(folder, name)))
}

function readText(file: string): string[] {
  try {
    return [readFileSync(file, 'utf8').trim()]
  } catch {
    return []
  }
}

/**
 * Lists the crates in the lockfile of Temporal's native library. Some crates are used only to build
 * the library.
 */
export function cratesOf(root: string): BillEntry[] {
  const lock = readFileSync(join(root, 'node_modules/@temporalio/core-bridge/Cargo.lock'), 'utf8')
  const found = lock.matchAll(/\[\[package\]\]\nname = "([^"]+)"\nversion = "([^"]+)"(\nsource = "registry)?/g)
  const crates = [...found].filter(([, , , source]) => source)
  return crates.map(([, name = '', version = '']) => ({
    name,
    version,
    licence: null,
    texts: [],
    purl: `pkg:cargo/${name}@${version}`,
  }))
}

function unique(parts: readonly BillEntry[]): BillEntry[] {
  const byPurl = new Map(parts.map((part) => [part.purl, part]))
  return [...byPurl.values()].sort((a, b) => (a.purl < b.purl ? -1 : 1))
}

type BillOf = { name: string; version: string; architecture: string; parts: readonly BillEntry[]; builtAt: Date }

/** Builds a CycloneDX 1.6 bill of materials. The bill is equal for equal parts and dates. */
export function billOfMaterials({ name, version, architecture, parts, builtAt }: BillOf): object {
  const purl = `pkg:generic/${name}@${version}?arch=${architecture}`
  return {
    $schema: 'http://cyclonedx.org/schema/bom-1.6.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    serialNumber: `urn:uuid:${uuidOf([purl, ...parts.map((part) => part.purl)].join('\n'))}`,
    version: 1,
    metadata: {
      timestamp: builtAt.toISOString(),
      component: { type: 'application', 'bom-ref': purl, name, version, purl, licenses: licencesOf('Apache-2.0') },
    },
    components: parts.map((part) => ({
      type: 'library',
      'bom-ref': part.purl,
      name: part.name,
      version: part.version,
      purl: part.purl,
      ...(part.licence && { licenses: licencesOf(part.licence) }),
      ...(part.sha512 && { hashes: [{ alg: 'SHA-512', content: part.sha512 }] }),
    })),
    dependencies: [{ ref: purl, dependsOn: parts.map((part) => part.purl) }],
  }
}

/** Formats a licence: a single licence as an SPDX id, several licences as an expression. */
function licencesOf(said: string): object[] {
  return /[\s(]/.test(said) ? [{ expression: said }] : [{ license: { id: said } }]
}

function uuidOf(text: string): string {
  const hex = createHash('sha256').update(text).digest('hex')
  return [hex.slice(0, 8), hex.slice(8, 12), `5${hex.slice(13, 16)}`, `a${hex.slice(17, 20)}`, hex.slice(20, 32)].join(
    '-',
  )
}

/**
 * Joins all licences in the archive. Each licence text is listed once, under the names of the parts
 * that it covers.
 */
export function licencesText(root: string, parts: readonly BillEntry[], nodeLicence: string): string {
  const own = ['LICENSE', 'NOTICE'].map((file) => readFileSync(join(root, file), 'utf8').trim())
  const byText = new Map<string, string[]>()
  for (const part of parts) {
    const text = part.texts.join('\n\n') || `(no text in the package; its manifest says ${part.licence ?? 'nothing'})`
    byText.set(text, [...(byText.get(text) ?? []), `${part.name} ${part.version} (${part.licence ?? 'unnamed'})`])
  }
  const sections = [...byText].map(([text, names]) => `${names.join('\n')}\n\n${text}`)
  const node = `Node.js, with its bundled components\n\n${readFileSync(nodeLicence, 'utf8').trim()}`
  return `${['Nightshift', ...own, node, ...sections].join(`\n\n${'='.repeat(80)}\n\n`)}\n`
}
