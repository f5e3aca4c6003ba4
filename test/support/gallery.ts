import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { extname, join } from 'node:path'
import { rootDir } from '../../start/web.ts'
import { temporaryDirectory } from './directory.ts'

const types: Record<string, string> = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.woff2': 'font/woff2',
}

/** The gallery, built as the pages are and opened without a server of Nightshift. */
export async function openGallery(): Promise<{ url: string; close(): void }> {
  const dist = temporaryDirectory()
  const root = join(rootDir, 'web', 'gallery')
  const vite = join(rootDir, 'node_modules', 'vite', 'bin', 'vite.js')
  const words = ['build', root, '--config', join(root, 'vite.config.ts')]
  execFileSync(process.execPath, [vite, ...words, '--outDir', dist.path, '--emptyOutDir'], {
    env: { ...process.env, NODE_ENV: 'production' },
    stdio: 'pipe',
  })
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://localhost')
    const file = pathname === '/' ? '/gallery.html' : pathname
    if (!(extname(file) in types)) return void response.writeHead(404).end('{}')
    response.writeHead(200, { 'content-type': types[extname(file)] })
    response.end(readFileSync(join(dist.path, file)))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    url,
    close() {
      server.closeAllConnections()
      server.close()
      dist.remove()
    },
  }
}
