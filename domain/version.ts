import manifest from '../package.json' with { type: 'json' }

/** The version of the package, which command, documents, metrics and image share. */
export const version: string = manifest.version
