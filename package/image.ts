import { createHash } from 'node:crypto'
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { type Architecture, run } from './programs.ts'

/** What the image has of Debian beside its smallest root: certificates, what Node is linked with, and what reads a site's runbooks from a repository. */
const debianPackages = ['ca-certificates', 'git', 'libstdc++6', 'openssh-client']
/** Texts for people, which no container shows; licences stay. */
const leftOut = ['/usr/share/doc/*', '/usr/share/man/*', '/usr/share/info/*', '/usr/share/locale/*']
/** Of the services in the image, in compose.yml and in examples/kubernetes. */
const user = '1000:1000'

type ImageOptions = {
  /** The unpacked package. */
  folder: string
  /** A root with glibc, certificates, git and ssh, as a tar; null: made of Debian's packages by mmdebstrap. */
  base: string | null
  architecture: Architecture
  /** `nightshift:0.2.0`. */
  name: string
  target: string
  madeAt: Date
}

type Layer = { digest: string; diffId: string; bytes: Buffer }

/**
 * Writes the image as one archive that `docker load`, `podman load` and `ctr images import` take: an OCI image layout (image-spec 1.1), with
 * the manifest.json of `docker save` beside it, which engines before 25 read. Two layers: the root, and the package over it.
 */
export function writeImage(options: ImageOptions): void {
  const { architecture, name, target, madeAt } = options
  const draft = mkdtempSync(join(tmpdir(), 'nightshift-image-'))
  try {
    const base = options.base ?? makeRoot(join(draft, 'base.tar'), architecture, madeAt)
    const layers = [base, packLayer(draft, options.folder, madeAt)].map(toLayer)
    const config = toJson({
      created: madeAt.toISOString(),
      architecture: architecture === 'x64' ? 'amd64' : 'arm64',
      os: 'linux',
      config: {
        User: user,
        WorkingDir: '/opt/nightshift/lib',
        Cmd: ['node', 'api/main.js'],
        ExposedPorts: { '8080/tcp': {}, '8081/tcp': {} },
        Env: [
          'PATH=/opt/nightshift/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
          ...imageSettings.map(([key, value]) => `${key}=${value}`),
        ],
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
    run('tar', ['-cf', target, ...asRoot(madeAt), '-C', join(draft, 'image'), '.'], draft)
  } finally {
    rmSync(draft, { recursive: true, force: true })
  }
}

/** As the Dockerfile sets them. */
const imageSettings: [name: string, value: string][] = [
  ['NODE_ENV', 'production'],
  ['HOST', '0.0.0.0'],
  ['MALLOC_ARENA_MAX', '2'],
  ['NODE_OPTIONS', '--max-semi-space-size=16'],
  ['NIGHTSHIFT_COMMAND', 'docker compose exec api nightshift'],
  ['NIGHTSHIFT_URL', 'http://127.0.0.1:8080'],
]

/** Debian's smallest root with what the image needs, and user 1000. */
function makeRoot(tar: string, architecture: Architecture, madeAt: Date): string {
  const options = [
    ...['--variant=essential', '--format=tar', `--architectures=${architecture === 'x64' ? 'amd64' : 'arm64'}`],
    ...[`--include=${debianPackages.join(',')}`, '--aptopt=APT::Install-Recommends "false"'],
    ...leftOut.map((path) => `--dpkgopt=path-exclude=${path}`),
    '--dpkgopt=path-include=/usr/share/doc/*/copyright',
    '--customize-hook=chroot "$1" useradd --uid 1000 --user-group --create-home nightshift',
  ]
  const epoch = `SOURCE_DATE_EPOCH=${Math.floor(madeAt.getTime() / 1_000)}`
  const where = existing('/etc/apt/sources.list.d/debian.sources')
  run('env', [epoch, 'mmdebstrap', ...options, 'bookworm', tar, ...where], tmpdir())
  return tar
}

/** This machine's own sources of Debian's packages, where it is a Debian; else those of mmdebstrap. */
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
  run('tar', ['-cf', tar, ...asRoot(madeAt), '-C', root, 'opt', 'usr'], draft)
  return tar
}

function asRoot(madeAt: Date): string[] {
  const mtime = `--mtime=@${Math.floor(madeAt.getTime() / 1_000)}`
  return ['--owner=0', '--group=0', '--numeric-owner', '--mode=u+rwX,go+rX,go-w', mtime, '--sort=name']
}

function toLayer(tar: string): Layer {
  const plain = readFileSync(tar)
  const bytes = gzipSync(plain, { level: 9 })
  return { bytes, digest: sha256(bytes), diffId: sha256(plain) }
}

const toJson = (value: unknown): Buffer => Buffer.from(JSON.stringify(value))
const sha256 = (bytes: Buffer): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`
