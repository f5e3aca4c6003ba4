import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { parseArgs } from 'node:util'
import { version } from '../domain/version.ts'
import { ensureWeb, rootDir } from '../start/web.ts'
import { shippedBundle, workflowBundle } from '../worker/bundle.ts'
import { billOfMaterials, cratesOf, licencesText, partsOf } from './bill.ts'
import { bundleCode } from './code.ts'
import { writeImage } from './image.ts'
import { copyPages } from './pages.ts'
import { type Architecture, architectures, asRootAt, placePrograms, run } from './programs.ts'
import { makeKey, publicKeyOf, readKey, writeSums } from './sign.ts'

const usage = `npm run package -- [options]      writes the archives of a release into dist/

  --arch x64|arm64     only this architecture (default: both)
  --out FOLDER         where the archives are written (dist)
  --key FILE           the Ed25519 key that signs the checksums (NIGHTSHIFT_RELEASE_KEY: the key, or the path of its file)
  --make-key FILE      create such a key, print its public half, and do nothing else
  --with-glpk          include glpk.js, which is GPL-3.0: docs/contributing/release.md has the obligations
  --quick              compress little, for a quick test
  --image              write a container image instead, for this machine's architecture or --arch: an archive for docker load and ctr
  --base FILE          the root file system of that image as a tar (default: made from Debian packages by mmdebstrap)
  --folder FOLDER      write the unpacked package to this folder instead, for this machine's architecture or --arch (the Dockerfile uses this)
`

type Options = { architectures: Architecture[]; dist: string; key: string | null; withGlpk: boolean; isQuick: boolean }
/** Options for the package of one architecture, as an image or a folder. */
type OneOptions = Pick<Options, 'dist' | 'withGlpk'> & {
  architecture: Architecture
  base: string | null
  folder: string | null
}

const units = ['nightshift-api.service', 'nightshift-worker.service', 'nightshift-agent.service']

/** npm packages that the bundler includes in the pages, with the typeface and the icons. */
const inPages = [
  ...['react', 'react-dom', 'scheduler', '@tanstack/react-query', '@tanstack/query-core', 'lucide-react'],
  '@fontsource-variable/inter',
]

/** Builds each archive in a temporary folder. Then writes the checksums of all files in `dist`. */
async function pack(options: Options): Promise<void> {
  const { dist, key } = options
  mkdirSync(dist, { recursive: true })
  await inDraft(options.withGlpk, (draft, files) => {
    for (const architecture of options.architectures) archive(draft, files, architecture, options)
  })
  const script = readFileSync(join(import.meta.dirname, 'install.sh'), 'utf8')
  const named = script.replaceAll('@VERSION@', version).replace('@KEY@', key === null ? '' : publicKeyOf(key))
  writeFileSync(join(dist, 'install.sh'), named, { mode: 0o755 })
  await writeSums(dist, key)
  console.log(
    `  SHA256SUMS${key === null ? ', not signed: name a key with --key or NIGHTSHIFT_RELEASE_KEY' : ' and its signature'}`,
  )
}

/** Writes one package as an image into `dist`, or copies it into `folder`. */
async function packOne({ architecture, dist, withGlpk, base, folder }: OneOptions): Promise<void> {
  await inDraft(withGlpk, (draft, files) => {
    const filled = fill(draft, files, architecture)
    if (folder !== null) return cpSync(filled, folder, { recursive: true })
    mkdirSync(dist, { recursive: true })
    const target = join(dist, `nightshift-${version}-image-${architecture}.tar`)
    writeImage({ folder: filled, base, architecture, name: `nightshift:${version}`, target, madeAt: commitDate() })
    console.log(`  ${target}: ${(statSync(target).size / 1e6).toFixed(1)} MB, nightshift:${version}`)
  })
}

/** Builds the code that all packages share, in a folder that is removed afterwards. */
async function inDraft(withGlpk: boolean, use: (draft: string, files: string[]) => void): Promise<void> {
  await ensureWeb()
  const draft = mkdtempSync(join(tmpdir(), 'nightshift-package-'))
  try {
    const lib = join(draft, 'lib')
    const files = await bundleCode({ root: rootDir, to: lib, without: withGlpk ? [] : ['glpk.js'] })
    writeFileSync(join(lib, shippedBundle), (await workflowBundle()).code)
    use(draft, files)
  } finally {
    rmSync(draft, { recursive: true, force: true })
  }
}

/** Fills a folder with the package of one architecture. The folder has the package's name. */
function fill(draft: string, files: readonly string[], architecture: Architecture): string {
  const folder = join(draft, `nightshift-${version}-linux-${architecture}`)
  mkdirSync(join(folder, 'units'), { recursive: true })
  cpSync(join(draft, 'lib'), join(folder, 'lib'), { recursive: true })
  const { nodeLicence, nodeVersion } = placePrograms(rootDir, folder, architecture)
  cpSync(join(import.meta.dirname, 'nightshift'), join(folder, 'bin/nightshift'))
  chmodSync(join(folder, 'bin/nightshift'), 0o755)
  for (const unit of units) cpSync(join(rootDir, 'examples', unit), join(folder, 'units', unit))
  const pages = inPages.map((each) => join(rootDir, 'node_modules', each, 'package.json'))
  const library = join(rootDir, 'node_modules/@temporalio/core-bridge/package.json')
  const parts = partsOf(rootDir, [...files, ...pages, library])
  const node = {
    name: 'node',
    version: nodeVersion,
    licence: 'MIT',
    texts: [],
    purl: `pkg:generic/node@${nodeVersion}`,
  }
  const all = [...parts, node, ...cratesOf(rootDir)]
  const bill = billOfMaterials({ name: 'nightshift', version, architecture, parts: all, builtAt: commitDate() })
  const billText = `${JSON.stringify(bill, null, 2)}\n`
  writeFileSync(join(folder, 'sbom.cdx.json'), billText)
  writeFileSync(join(folder, 'LICENSES'), licencesText(rootDir, parts, nodeLicence))
  for (const file of ['LICENSE', 'NOTICE', 'CHANGELOG.md']) cpSync(join(rootDir, file), join(folder, file))
  copyPages(join(rootDir, 'docs'), join(folder, 'docs'))
  run(process.execPath, [join(rootDir, 'cli/main.ts'), 'man', '-q', '--out', join(folder, 'share/man/man1')], rootDir)
  return folder
}

function archive(draft: string, files: readonly string[], architecture: Architecture, options: Options): void {
  const folder = fill(draft, files, architecture)
  const name = basename(folder)
  cpSync(join(folder, 'sbom.cdx.json'), join(options.dist, `${name}.cdx.json`))
  const target = join(options.dist, `${name}.tar.xz`)
  const compress = { ...process.env, XZ_OPT: options.isQuick ? '-0 -T0' : '-9 -T2' }
  run('tar', ['-cJf', target, ...asRootAt(commitDate()), '-C', draft, name], rootDir, compress)
  tell(target, folder)
  rmSync(folder, { recursive: true })
}

/** Returns the date of the commit, or the current time if git does not know the date. */
function commitDate(): Date {
  try {
    return new Date(Number(run('git', ['log', '-1', '--format=%ct'], rootDir).trim()) * 1_000)
  } catch {
    return new Date()
  }
}

/**
 * Prints the sizes of an archive: to download, unpacked, and unpacked without Node and Temporal's
 * library.
 */
function tell(target: string, folder: string): void {
  const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(1)} MB`
  const sizeOf = (...words: string[]) =>
    Number(
      run(
        'sh',
        ['-c', `find "$0" ${words.join(' ')} -type f -printf '%s\\n' | awk '{s+=$1} END {print s}'`, folder],
        rootDir,
      ),
    )
  const large = sizeOf("'('", '-name index.node -o -path "*/bin/node"', "')'")
  const all = sizeOf()
  console.log(
    `  ${target}: ${megabytes(statSync(target).size)} to download, ${megabytes(all)} unpacked, ${megabytes(all - large)} of it beside Node and Temporal's library`,
  )
}

const { values } = parseArgs({
  options: {
    arch: { type: 'string' },
    out: { type: 'string', default: join(rootDir, 'dist') },
    key: { type: 'string' },
    'make-key': { type: 'string' },
    'with-glpk': { type: 'boolean', default: false },
    quick: { type: 'boolean', default: false },
    image: { type: 'boolean', default: false },
    base: { type: 'string' },
    folder: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
})
const wanted = architectures.filter((each) => values.arch === undefined || each === values.arch)
if (values.help || wanted.length === 0) {
  console.log(usage)
  process.exitCode = values.help ? 0 : 2
} else if (values['make-key'] !== undefined) {
  console.log(makeKey(values['make-key']))
} else if (values.image || values.folder !== undefined) {
  const [architecture = 'x64'] = wanted.length === 1 ? wanted : architectures.filter((each) => each === process.arch)
  const { out: dist, base = null, folder = null, 'with-glpk': withGlpk } = values
  await packOne({ architecture, dist, withGlpk, base, folder })
} else {
  await pack({
    architectures: wanted,
    dist: values.out,
    key: readKey(values.key, process.env.NIGHTSHIFT_RELEASE_KEY),
    withGlpk: values['with-glpk'],
    isQuick: values.quick,
  })
}
