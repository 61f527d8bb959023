# Values as JSON, with 15 digits.
json<-function(x){
  if(is.list(x)){
    parts<-vapply(x,json,"")
    if(is.null(names(x))) return(paste0("[",paste(parts,collapse=","),"]"))
    return(paste0("{",paste0('"',names(x),'":',parts,collapse=","),"}"))
  }
  if(is.matrix(x)) return(json(lapply(seq_len(nrow(x)),function(i) x[i,])))
  value<-if(is.character(x)) paste0('"',x,'"') else ifelse(is.na(x),"null",sprintf("%.15g",as.numeric(x)))
  if(length(value)==1&&is.null(attr(x,"array"))) value else paste0("[",paste(value,collapse=","),"]")
}
