import { createHash } from 'node:crypto'
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { type Architecture, asRootAt, run } from './programs.ts'

/** Folders of documentation, which a container does not need. Licences are kept. */
const leftOut = ['/usr/share/doc/*', '/usr/share/man/*', '/usr/share/info/*', '/usr/share/locale/*']

type ImageOptions = {
  /** The folder of the unpacked package. */
  folder: string
  /**
   * A root file system with glibc, certificates, git and ssh, as a tar file. If `base` is null,
   * mmdebstrap makes the root file system from Debian's packages.
   */
  base: string | null
  architecture: Architecture
  /** The image's name and tag, for example `nightshift:0.2.0`. */
  name: string
  target: string
  madeAt: Date
}

type Layer = { digest: string; diffId: string; bytes: Buffer }

/**
 * Writes the image as one archive for `docker load`, `podman load` and `ctr images import`. The
 * archive is an OCI image layout (image-spec 1.1), with the manifest.json of `docker save` for
 * older engines. The image has two layers: the root file system, and the package above it.
 */
export function writeImage(options: ImageOptions): void {
  const { architecture, name, target, madeAt } = options
  const { packages, settings, folder, user, command } = readDockerfile()
  const draft = mkdtempSync(join(tmpdir(), 'nightshift-image-'))
  try {
    const base = options.base ?? makeRoot(join(draft, 'base.tar'), packages, architecture, madeAt)
    const layers = [base, packLayer(draft, options.folder, madeAt)].map(toLayer)
    const config = toJson({
      created: madeAt.toISOString(),
      architecture: architecture === 'x64' ? 'amd64' : 'arm64',
      os: 'linux',
      config: {
        User: user,
        WorkingDir: folder,
        Cmd: command,
        ExposedPorts: { '8080/tcp': {}, '8081/tcp': {} },
        Env: settings,
      },
      rootfs: { type: 'layers', diff_ids: layers.map(({ diffId }) => diffId) },
      history: layers.map(() => ({ created: madeAt.toISOString() })),
    })
    const blobs = join(draft, 'image/blobs/sha256')
    mkdirSync(blobs, { recursive: true })
    const put = (bytes: Buffer) => {
      const digest = sha256(bytes)
      writeFileSync(join(blobs, digest.slice('sha256:'.length)), bytes)
      return { digest, size: bytes.length }
    }
    const layerType = 'application/vnd.oci.image.layer.v1.tar+gzip'
    const manifest = toJson({
      schemaVersion: 2,
      mediaType: 'application/vnd.oci.image.manifest.v1+json',
      config: { mediaType: 'application/vnd.oci.image.config.v1+json', ...put(config) },
      layers: layers.map(({ bytes }) => ({ mediaType: layerType, ...put(bytes) })),
    })
    const annotations = {
      'io.containerd.image.name': `docker.io/library/${name}`,
      'org.opencontainers.image.ref.name': name,
    }
    const inLayout = (file: string, content: unknown) => writeFileSync(join(draft, 'image', file), toJson(content))
    inLayout('oci-layout', { imageLayoutVersion: '1.0.0' })
    inLayout('index.json', {
      schemaVersion: 2,
      mediaType: 'application/vnd.oci.image.index.v1+json',
      manifests: [{ mediaType: 'application/vnd.oci.image.manifest.v1+json', ...put(manifest), annotations }],
    })
    const pathOf = (digest: string) => `blobs/sha256/${digest.slice('sha256:'.length)}`
    inLayout('manifest.json', [
      { Config: pathOf(sha256(config)), RepoTags: [name], Layers: layers.map(({ digest }) => pathOf(digest)) },
    ])
    run('tar', ['-cf', target, ...asRootAt(madeAt), '-C', join(draft, 'image'), '.'], draft)
  } finally {
    rmSync(draft, { recursive: true, force: true })
  }
}

type ImageFacts = { packages: string[]; settings: string[]; folder: string; user: string; command: string[] }

/** Reads the facts of the Dockerfile's last image, so that this image is equal to it. */
function readDockerfile(): ImageFacts {
  const text = readFileSync(join(import.meta.dirname, '../Dockerfile'), 'utf8').replaceAll(/\\\n/g, ' ')
  const stages = text.split(/^FROM /m)
  const base = stages.find((stage) => / AS base\n/.test(stage)) ?? ''
  const last = stages.at(-1) ?? ''
  const said = (stage: string, words: RegExp): string => {
    const [, found] = words.exec(stage) ?? []
    if (found === undefined) throw new Error(`The Dockerfile has no line like ${words} where the image expects it.`)
    return found
  }
  const environment = [base, last].flatMap((stage) => [...stage.matchAll(/^ENV (.*)$/gm)].map(([, line = '']) => line))
  return {
    packages: said(base, /install --yes --no-install-recommends (.*?) +&&/).split(/\s+/),
    settings: environment.flatMap((line) =>
      [...line.matchAll(/(\w+)=(?:"([^"]*)"|(\S+))/g)].map(([, name, quoted, plain]) => `${name}=${quoted ?? plain}`),
    ),
    folder: said(base, /^WORKDIR (.*)$/m),
    user: said(last, /^USER (.*)$/m),
    command: JSON.parse(said(last, /^CMD (.*)$/m)),
  }
}

/**
 * Makes Debian's smallest root file system with the packages that the image needs, and with user
 * 1000.
 */
function makeRoot(tar: string, packages: readonly string[], architecture: Architecture, madeAt: Date): string {
  const options = [
    ...['--variant=essential', '--format=tar', `--architectures=${architecture === 'x64' ? 'amd64' : 'arm64'}`],
    ...[`--include=${packages.join(',')}`, '--aptopt=APT::Install-Recommends "false"'],
    ...leftOut.map((path) => `--dpkgopt=path-exclude=${path}`),
    '--dpkgopt=path-include=/usr/share/doc/*/copyright',
    '--customize-hook=chroot "$1" useradd --uid 1000 --user-group --create-home nightshift',
  ]
  const epoch = `SOURCE_DATE_EPOCH=${Math.floor(madeAt.getTime() / 1_000)}`
  const where = existing('/etc/apt/sources.list.d/debian.sources')
  run('env', [epoch, 'mmdebstrap', ...options, 'bookworm', tar, ...where], tmpdir())
  return tar
}

/**
 * Lists the file with this machine's Debian package sources. Empty without sources for bookworm:
 * mmdebstrap then uses its own sources.
 */
function existing(file: string): string[] {
  try {
    return readFileSync(file, 'utf8').includes('bookworm') ? [file] : []
  } catch {
    return []
  }
}

function packLayer(draft: string, folder: string, madeAt: Date): string {
  const root = join(draft, 'layer')
  cpSync(folder, join(root, 'opt/nightshift'), { recursive: true })
  mkdirSync(join(root, 'usr/local/bin'), { recursive: true })
  symlinkSync('/opt/nightshift/bin/nightshift', join(root, 'usr/local/bin/nightshift'))
  chmodSync(join(root, 'opt/nightshift'), 0o755)
  const tar = join(draft, 'layer.tar')
  run('tar', ['-cf', tar, ...asRootAt(madeAt), '-C', root, 'opt', 'usr'], draft)
  return tar
}

function toLayer(tar: string): Layer {
  const plain = readFileSync(tar)
  const bytes = gzipSync(plain, { level: 9 })
  return { bytes, digest: sha256(bytes), diffId: sha256(plain) }
}

const toJson = (value: unknown): Buffer => Buffer.from(JSON.stringify(value))
const sha256 = (bytes: Buffer): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`
