def write_all(folder, asked, results, names):
    return ""
