import manifest from '../package.json' with { type: 'json' }

/** The package's version, shared by command, documents, metrics and image. */
export const version: string = manifest.version
