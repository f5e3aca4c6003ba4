import { buildWeb, rootDir } from './web.ts'

await buildWeb(rootDir, 'inherit')
