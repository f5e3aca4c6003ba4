export declare const rootDir: string
export declare function runUnderNode24(args: string[], options?: { cwd?: string }): Promise<void>
export declare function whyInstall(dir: string): string | undefined
